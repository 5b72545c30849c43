//! The contents of the plugin folder: which files are plugins, and whether a file has changed.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use toolbay_model::text::clean;

use crate::description_limits::DescriptionLimits;
use crate::file_stamp::FileStamp;
use crate::load_error::LoadError;
use crate::plain_tree::{self, PlainTree, TreeKind};

/// Maximum number of files of a skill. Every client accepts as many.
const MAX_SKILL_FILES: usize = 512;

/// The files of one plugin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PluginFiles {
    /// `<id>.wasm`; `None` if there are only plain files.
    pub component: Option<FileStamp>,
    /// `<id>.toml`, if there is one.
    pub grant: Option<FileStamp>,
    /// If there is no `<id>.toml`: the name of a file that was probably meant to be it.
    pub misnamed_grant: Option<String>,
    /// `<id>.wit`, if there is one.
    pub wit: Option<FileStamp>,
    /// `<id>.prompts`, if there is one.
    pub prompts: Option<Arc<PlainTree>>,
    /// `<id>.resources`, if there is one.
    pub resources: Option<Arc<PlainTree>>,
    /// `<id>.skill`, if there is one.
    pub skill: Option<Arc<PlainTree>>,
}

impl PluginFiles {
    /// Returns whether everything but the contents of the folders of plain files is the same. A
    /// folder that replaces another counts as a change: it may be in another location, which is
    /// checked against the paths that plugins can write to.
    pub(crate) fn is_same_except_plain_files(&self, other: &Self) -> bool {
        let root = |tree: &Option<Arc<PlainTree>>| {
            tree.as_ref().and_then(|tree| tree.folders.get("").copied())
        };
        self.component == other.component
            && self.grant == other.grant
            && self.misnamed_grant == other.misnamed_grant
            && self.wit == other.wit
            && root(&self.prompts) == root(&other.prompts)
            && root(&self.resources) == root(&other.resources)
            && root(&self.skill) == root(&other.skill)
    }

    /// Checks that no other file was probably meant to be the plugin's grant. Without the grant,
    /// the plugin would be served without the restrictions in it.
    ///
    /// # Errors
    ///
    /// There is such a file.
    pub(crate) fn check_grant_name(&self, id: &str) -> Result<(), LoadError> {
        let Some(name) = &self.misnamed_grant else {
            return Ok(());
        };
        Err(LoadError::Refused(format!(
            "{name} looks like its grant, whose name must be {id}.toml: rename {name} or delete it"
        )))
    }

    /// Returns the paths of the folders with plain files, with their identities.
    pub(crate) fn plain_folders<'a>(
        &'a self,
        folder: &Path,
        id: &str,
    ) -> impl Iterator<Item = (PathBuf, (u64, u64))> + 'a {
        let trees = [
            (prompts_path(folder, id), &self.prompts),
            (resources_path(folder, id), &self.resources),
            (skill_path(folder, id), &self.skill),
        ];
        trees
            .into_iter()
            .filter_map(|(path, tree)| Some((path, tree.as_ref()?)))
            .flat_map(|(path, tree)| {
                tree.folders.iter().map(move |(inner, identity)| {
                    let path = if inner.is_empty() {
                        path.clone()
                    } else {
                        path.join(inner)
                    };
                    (path, *identity)
                })
            })
    }
}

/// Contents of the plugin folder.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct FolderListing {
    /// Every plugin, by id.
    pub plugins: BTreeMap<String, PluginFiles>,
    /// Files that belong to no plugin but were probably meant to, by name, with the reason.
    pub notes: BTreeMap<String, String>,
}

/// Checks that the current user can list the plugin folder and access its entries.
///
/// # Errors
///
/// Returns the reason, in one line with the path and the user.
pub fn check_plugin_folder(folder: &Path) -> Result<(), String> {
    let Err(error) = std::fs::read_dir(folder).and_then(|_| check_search_permission(folder)) else {
        return Ok(());
    };
    let cure = match error.kind() {
        io::ErrorKind::PermissionDenied => {
            "; give that user the permissions to list it and to look into it (r and x)"
        }
        _ => "",
    };
    let user = rustix::process::geteuid().as_raw();
    Err(format!(
        "the plugin folder {} cannot be read as user {user}: {}{cure}",
        folder.display(),
        error.kind()
    ))
}

/// Checks that the entries of a folder can be accessed. Listing their names does not require that.
fn check_search_permission(folder: &Path) -> io::Result<()> {
    std::fs::metadata(folder.join(".")).map(drop)
}

/// Scans `folder`, if it exists. Follows symbolic links; in folders of plain files, only those that
/// stay within the folder. A problem with a single entry becomes a note in the listing.
///
/// # Errors
///
/// The folder itself cannot be read.
pub(crate) fn scan(folder: &Path, bounds: &DescriptionLimits) -> io::Result<Option<FolderListing>> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        // A file with the folder's name is not a folder either.
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
            ) =>
        {
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    check_search_permission(folder)?;
    let mut found = FolderListing::default();
    let (mut components, mut trees) = (BTreeMap::new(), BTreeMap::<String, PlainTrees>::new());
    let (mut grants, mut wits) = (BTreeSet::new(), BTreeSet::new());
    // The names of files that look like grants, by what they have in common with the right name.
    let mut similar = BTreeMap::new();
    for entry in entries {
        let name = entry?.file_name();
        if let Some(common) = grant_likeness(&name) {
            similar
                .entry(common)
                .or_insert_with(Vec::new)
                .push(name.display().to_string());
        }
        let Some((id, part)) = parse_file_name(&name) else {
            if let Some(why) = note(&name) {
                found.add_note(&name.display(), &why);
            }
            continue;
        };
        let (kind, most) = match part {
            FileRole::Component => {
                match stat_component(&component_path(folder, id)) {
                    Ok(Some(component)) => drop(components.insert(id.to_owned(), component)),
                    // It was deleted after it was listed.
                    Ok(None) => {}
                    Err(why) => found.add_note(&name.display(), &why),
                }
                continue;
            }
            FileRole::Grant => {
                grants.insert(id.to_owned());
                continue;
            }
            FileRole::Wit => {
                wits.insert(id.to_owned());
                continue;
            }
            FileRole::Prompts => (TreeKind::Prompts, bounds.prompts),
            FileRole::Resources => (TreeKind::Resources, bounds.resources),
            FileRole::Skill => (TreeKind::Skill, MAX_SKILL_FILES),
        };
        match plain_tree::scan(&folder.join(&name), kind, most) {
            Some(tree) => {
                let trees = trees.entry(id.to_owned()).or_default();
                let place = match kind {
                    TreeKind::Prompts => &mut trees.prompts,
                    TreeKind::Resources => &mut trees.resources,
                    TreeKind::Skill => &mut trees.skill,
                };
                *place = Some(Arc::new(tree));
            }
            None => {
                if let Some(why) = folder_problem(&folder.join(&name)) {
                    found.add_note(&name.display(), &why);
                }
            }
        }
    }
    let ids: BTreeSet<&String> = components.keys().chain(trees.keys()).collect();
    for id in ids {
        // Most plugins have neither file, and a start may scan a thousand plugins.
        let beside = |names: &BTreeSet<String>, path: fn(&Path, &str) -> PathBuf| {
            let listed = names.contains(id).then(|| path(folder, id))?;
            // A dangling link counts as a file: the plugin is refused, instead of being served as
            // if it had no grant.
            let metadata =
                std::fs::metadata(&listed).or_else(|_| std::fs::symlink_metadata(&listed));
            metadata
                .ok()
                .map(|metadata| FileStamp::from_metadata(&metadata))
        };
        let (grant, wit) = (beside(&grants, grant_path), beside(&wits, wit_path));
        let PlainTrees {
            prompts,
            resources,
            skill,
        } = trees.get(id).cloned().unwrap_or_default();
        let component = components.get(id).cloned();
        let others = similar
            .get(&fold_name(id))
            .filter(|_| grant.is_none())
            .into_iter()
            .flatten();
        let misnamed_grant = others
            .filter(|name| !is_grant_of_other_plugin(name, &components, &trees))
            .min();
        let misnamed_grant = misnamed_grant.map(|name| clean(name).into_owned());
        found.plugins.insert(
            id.clone(),
            PluginFiles {
                component,
                grant,
                misnamed_grant,
                wit,
                prompts,
                resources,
                skill,
            },
        );
    }
    for id in grants {
        // The plugin folder may contain the server's own configuration.
        if !found.plugins.contains_key(&id) && id != "toolbay" {
            let why = format!(
                "it is a grant, but there is no {id}.wasm, {id}.prompts, {id}.resources or {id}.skill"
            );
            found.add_note(&format_args!("{id}.toml"), &why);
        }
    }
    Ok(Some(found))
}

/// The folders with plain files of one plugin.
#[derive(Clone, Default)]
struct PlainTrees {
    prompts: Option<Arc<PlainTree>>,
    resources: Option<Arc<PlainTree>>,
    skill: Option<Arc<PlainTree>>,
}

impl FolderListing {
    /// Adds a note about a file. Names are shown without control characters.
    fn add_note(&mut self, name: &dyn Display, why: &str) {
        self.notes.insert(
            clean(&name.to_string()).into_owned(),
            clean(why).into_owned(),
        );
    }
}

/// Checks a file that has the name of a component. Returns `None` if it no longer exists.
fn stat_component(path: &Path) -> Result<Option<FileStamp>, String> {
    match std::fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => Err("it is a folder".to_owned()),
        Ok(metadata) => Ok(Some(FileStamp::from_metadata(&metadata))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => match std::fs::read_link(path) {
            Ok(target) => Err(format!(
                "it is a link to {}, which does not exist",
                target.display()
            )),
            Err(_) => Ok(None),
        },
        // For example, a link to itself.
        Err(error) => Err(format!("it cannot be read: {}", error.kind())),
    }
}

/// Returns the problem with an entry that has the name of a folder of plain files but is not a
/// folder. Returns `None` if it no longer exists.
fn folder_problem(path: &Path) -> Option<String> {
    match std::fs::metadata(path) {
        Ok(_) => Some("it must be a folder".to_owned()),
        Err(_) => std::fs::read_link(path)
            .ok()
            .map(|to| format!("it is a link to {}, which does not exist", to.display())),
    }
}

/// Extensions that are easily mistaken for those of folders of plain files, with the correct ones.
const MISSPELLED_EXTENSIONS: [(&str, &str); 3] = [
    (".prompt", ".prompts"),
    (".resource", ".resources"),
    (".skills", ".skill"),
];

/// Returns the note about a file that belongs to no plugin but was probably meant to.
fn note(name: &OsStr) -> Option<String> {
    let lower = name.to_str().unwrap_or_default().to_ascii_lowercase();
    let plain = FileRole::ALL
        .iter()
        .filter(|(part, _)| part.is_plain())
        .map(|(_, right)| (*right, *right));
    let near = MISSPELLED_EXTENSIONS
        .into_iter()
        .chain(plain)
        .find(|(wrong, _)| strip_extension(OsStr::new(&lower), wrong).is_some());
    if let Some((_, right)) = near {
        return Some(format!("its name must end in {right} in lower case"));
    }
    if grant_likeness(name).is_some() {
        return Some(
            "it looks like a grant, whose name is that of the plugin with .toml at the end"
                .to_owned(),
        );
    }
    let bytes = name.as_encoded_bytes();
    let ending = bytes.get(bytes.len().checked_sub(".wasm".len())?..)?;
    if !ending.eq_ignore_ascii_case(b".wasm") || bytes.starts_with(b".") {
        return None;
    }
    Some(if name.to_str().is_none() {
        "its name is not valid UTF-8".to_owned()
    } else {
        "its name must end in .wasm in lower case".to_owned()
    })
}

/// Returns what the name of a file has in common with the name of a grant that it was probably
/// meant to have: the folded id of the plugin. Returns `None` if the name does not look like a
/// grant.
fn grant_likeness(name: &OsStr) -> Option<String> {
    let folded = fold_name(name.to_str()?);
    if folded.starts_with('.') {
        return None;
    }
    // Some editors add an extension to the name that the user types.
    let name = folded.strip_suffix(".txt").unwrap_or(&folded);
    let (stem, extension) = name.rsplit_once('.')?;
    // `x.toml~` and `x.toml.bak` are copies that editors and people keep.
    let is_word = extension.chars().all(char::is_alphanumeric);
    if !is_word || strsim::osa_distance(extension, "toml") > 1 {
        return None;
    }
    let stem = [".wasm", ".toml"]
        .into_iter()
        .find_map(|more| stem.strip_suffix(more))
        .unwrap_or(stem);
    Some(stem.to_owned())
}

/// Returns a name without white space and without differences between upper and lower case.
fn fold_name(name: &str) -> String {
    name.chars()
        .filter(|c| !c.is_whitespace())
        .flat_map(char::to_lowercase)
        .collect()
}

/// Returns whether the name is exactly that of the grant of a plugin in the folder.
fn is_grant_of_other_plugin(
    name: &str,
    components: &BTreeMap<String, FileStamp>,
    trees: &BTreeMap<String, PlainTrees>,
) -> bool {
    let id = name.strip_suffix(".toml");
    id.is_some_and(|id| components.contains_key(id) || trees.contains_key(id))
}

/// Role of a file or folder in a plugin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileRole {
    /// `<id>.wasm`.
    Component,
    /// `<id>.toml`.
    Grant,
    /// `<id>.wit`.
    Wit,
    /// `<id>.prompts`.
    Prompts,
    /// `<id>.resources`.
    Resources,
    /// `<id>.skill`.
    Skill,
}

impl FileRole {
    const ALL: [(Self, &str); 6] = [
        (Self::Component, ".wasm"),
        (Self::Grant, ".toml"),
        (Self::Wit, ".wit"),
        (Self::Prompts, ".prompts"),
        (Self::Resources, ".resources"),
        (Self::Skill, ".skill"),
    ];

    /// Returns whether it is a folder of plain files.
    pub(crate) fn is_plain(self) -> bool {
        matches!(self, Self::Prompts | Self::Resources | Self::Skill)
    }
}

/// Parses the name of a file or folder. Returns the id of its plugin and its role, or `None` if it
/// belongs to no plugin.
pub(crate) fn parse_file_name(name: &OsStr) -> Option<(&str, FileRole)> {
    FileRole::ALL
        .into_iter()
        .find_map(|(part, extension)| Some((strip_extension(name, extension)?, part)))
}

/// Returns `name` without the extension. Files such as `.x.wasm` and `x.wasm~`, which are still
/// being written or which editors keep, are not plugins. The latter does not end in `.wasm` anyway.
fn strip_extension<'a>(name: &'a OsStr, extension: &str) -> Option<&'a str> {
    let stem = name.to_str()?.strip_suffix(extension)?;
    (!stem.is_empty() && !stem.starts_with('.')).then_some(stem)
}

/// Returns the path of a plugin's component.
pub(crate) fn component_path(folder: &Path, id: &str) -> PathBuf {
    folder.join(format!("{id}.wasm"))
}

/// Returns the path of a plugin's grant, which may not exist.
pub(crate) fn grant_path(folder: &Path, id: &str) -> PathBuf {
    folder.join(format!("{id}.toml"))
}

/// Returns the path of the `.wit` file that describes a plugin's functions, which may not exist.
pub(crate) fn wit_path(folder: &Path, id: &str) -> PathBuf {
    folder.join(format!("{id}.wit"))
}

/// Returns the path of the folder of a plugin's prompts without code, which may not exist.
pub(crate) fn prompts_path(folder: &Path, id: &str) -> PathBuf {
    folder.join(format!("{id}.prompts"))
}

/// Returns the path of the folder of a plugin's resources without code, which may not exist.
pub(crate) fn resources_path(folder: &Path, id: &str) -> PathBuf {
    folder.join(format!("{id}.resources"))
}

/// Returns the path of the folder of a plugin's skill, which may not exist.
pub(crate) fn skill_path(folder: &Path, id: &str) -> PathBuf {
    folder.join(format!("{id}.skill"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::description_limits::tests::SMALL;

    #[test]
    fn a_file_that_was_meant_to_be_a_grant_is_noticed() {
        let misnamed = |files: &[&str]| {
            let dir = tempfile::tempdir().unwrap();
            for file in files {
                std::fs::write(dir.path().join(file), "").unwrap();
            }
            let listing = super::scan(dir.path(), &SMALL).unwrap().unwrap();
            listing.plugins["text"].misnamed_grant.clone()
        };
        for name in [
            "text.TOML",
            "text.Toml",
            "Text.toml",
            "TEXT.TOML",
            "text.tml",
            "text.tolm",
            "text.tomll",
            "text.toml.txt",
            "text.txt.toml.txt",
            "text .toml",
            "text.toml ",
            " text.toml",
            "text. toml",
            "text.wasm.toml",
            "text.toml.toml",
            "text.toml.TXT",
        ] {
            let expected = (name != "text.txt.toml.txt").then(|| name.to_owned());
            assert_eq!(misnamed(&["text.wasm", name]), expected, "{name:?}");
            assert_eq!(
                misnamed(&["text.wasm", "text.toml", name]),
                None,
                "{name:?} next to the grant"
            );
        }
        for name in [
            "text.toml~",
            "text.toml.bak",
            "text.toml.orig",
            ".text.toml",
            "text.html",
            "text.tar",
            "texts.toml",
        ] {
            assert_eq!(misnamed(&["text.wasm", name]), None, "{name:?}");
        }
        // Names may differ only in case: then each plugin has its own grant.
        assert_eq!(misnamed(&["text.wasm", "Text.wasm", "Text.toml"]), None);
    }

    fn scan(folder: &Path) -> io::Result<Option<FolderListing>> {
        super::scan(folder, &SMALL)
    }

    #[test]
    fn which_names_are_plugins() {
        let cases = [
            ("weather.wasm", Some("weather")),
            ("two words.wasm", Some("two words")),
            ("a.b.wasm", Some("a.b")),
            (".weather.wasm", None),
            (".weather.wasm.swp", None),
            ("weather.wasm~", None),
            ("weather.wasm.tmp", None),
            ("weather.wasm.part", None),
            ("weather.toml", None),
            (".wasm", None),
            ("weather", None),
        ];
        for (name, id) in cases {
            let component =
                parse_file_name(OsStr::new(name)).filter(|(_, part)| *part == FileRole::Component);
            assert_eq!(component.map(|(id, _)| id), id, "{name}");
        }
        for (part, extension) in FileRole::ALL {
            assert_eq!(
                parse_file_name(OsStr::new(&format!("weather{extension}"))),
                Some(("weather", part))
            );
        }
    }

    #[test]
    fn a_scan_follows_links_and_skips_everything_but_files() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("plugins");
        assert_eq!(scan(&folder).unwrap(), None);
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(dir.path().join("elsewhere"), "x").unwrap();
        std::fs::write(folder.join("a.wasm"), "x").unwrap();
        std::fs::write(folder.join("a.toml"), "").unwrap();
        std::fs::create_dir(folder.join("folder.wasm")).unwrap();
        std::os::unix::fs::symlink("../elsewhere", folder.join("link.wasm")).unwrap();
        std::os::unix::fs::symlink("nowhere", folder.join("broken.wasm")).unwrap();
        let FolderListing { plugins, notes } = scan(&folder).unwrap().unwrap();
        assert_eq!(plugins.keys().collect::<Vec<_>>(), ["a", "link"]);
        assert!(plugins["a"].grant.is_some() && plugins["link"].grant.is_none());
        assert_eq!(notes["folder.wasm"], "it is a folder");
        assert_eq!(
            notes["broken.wasm"],
            "it is a link to nowhere, which does not exist"
        );
    }

    #[test]
    fn only_files_that_were_probably_meant_as_plugins_are_noted() {
        use std::os::unix::ffi::OsStrExt as _;
        let dir = tempfile::tempdir().unwrap();
        for name in [
            "a.prompt",
            "b.Prompts",
            "c.skills",
            "d.resource",
            "e.resourceful",
            ".f.prompt",
            "LOUD.WASM",
            "lonely.toml",
            "toolbay.toml",
            "readme.md",
            ".hidden.WASM",
            "a.wasm~",
            "wasm",
        ] {
            std::fs::write(dir.path().join(name), "").unwrap();
        }
        std::fs::write(dir.path().join(OsStr::from_bytes(b"\xff.wasm")), "").unwrap();
        std::os::unix::fs::symlink("loop.wasm", dir.path().join("loop.wasm")).unwrap();
        let FolderListing { plugins, notes } = scan(dir.path()).unwrap().unwrap();
        assert!(plugins.is_empty(), "{plugins:?}");
        let notes: Vec<String> = notes
            .iter()
            .map(|(name, why)| format!("{name}: {why}"))
            .collect();
        insta::assert_snapshot!(notes.join("\n"), @r#"
        LOUD.WASM: its name must end in .wasm in lower case
        a.prompt: its name must end in .prompts in lower case
        b.Prompts: its name must end in .prompts in lower case
        c.skills: its name must end in .skill in lower case
        d.resource: its name must end in .resources in lower case
        lonely.toml: it is a grant, but there is no lonely.wasm, lonely.prompts, lonely.resources or lonely.skill
        loop.wasm: it cannot be read: filesystem loop or indirection limit (e.g. symlink loop)
        �.wasm: its name is not valid UTF-8
        "#);
    }

    #[test]
    fn a_replaced_file_has_a_different_fingerprint() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.wasm");
        std::fs::write(&path, "x").unwrap();
        let before = scan(dir.path()).unwrap();
        std::fs::write(dir.path().join("new"), "y").unwrap();
        std::fs::rename(dir.path().join("new"), &path).unwrap();
        assert_ne!(scan(dir.path()).unwrap(), before);
    }

    #[test]
    fn folders_of_plain_files_belong_to_a_plugin_with_and_without_code() {
        let dir = tempfile::tempdir().unwrap();
        let path = |path: &str| dir.path().join(path);
        std::fs::create_dir_all(path("a.prompts")).unwrap();
        std::fs::create_dir_all(path("b.resources/sub")).unwrap();
        std::fs::create_dir(path("elsewhere")).unwrap();
        for file in [
            "a.wasm",
            "b.toml",
            "a.prompts/p.md",
            "b.resources/sub/r.md",
            "c.prompts",
            "elsewhere/e.md",
        ] {
            std::fs::write(path(file), "x").unwrap();
        }
        std::os::unix::fs::symlink("elsewhere", path("d.resources")).unwrap();
        std::os::unix::fs::symlink("nowhere", path("e.resources")).unwrap();
        let FolderListing { plugins, notes } = scan(dir.path()).unwrap().unwrap();
        assert_eq!(plugins.keys().collect::<Vec<_>>(), ["a", "b", "d"]);
        assert!(plugins["a"].component.is_some() && plugins["a"].prompts.is_some());
        assert!(plugins["b"].component.is_none() && plugins["b"].grant.is_some());
        assert!(
            plugins["d"]
                .resources
                .as_ref()
                .unwrap()
                .files
                .contains_key("e.md"),
            "the folder itself can be a link"
        );
        let folders: Vec<_> = plugins["b"]
            .plain_folders(dir.path(), "b")
            .map(|(path, _)| path)
            .collect();
        assert_eq!(folders, [path("b.resources"), path("b.resources/sub")]);
        assert_eq!(notes["c.prompts"], "it must be a folder");
        let after = |change: &dyn Fn()| {
            change();
            scan(dir.path()).unwrap().unwrap().plugins["b"]
                .is_same_except_plain_files(&plugins["b"])
        };
        assert!(after(
            &|| std::fs::write(path("b.resources/sub/r.md"), "y").unwrap()
        ));
        assert!(after(
            &|| std::fs::remove_dir_all(path("b.resources/sub")).unwrap()
        ));
        let replace = || {
            std::fs::rename(path("b.resources"), path("old")).unwrap();
            std::os::unix::fs::symlink("elsewhere", path("b.resources")).unwrap();
        };
        assert!(!after(&replace), "another folder");
        assert_eq!(
            notes["e.resources"],
            "it is a link to nowhere, which does not exist"
        );
        assert_eq!(notes.len(), 2);
    }
}
