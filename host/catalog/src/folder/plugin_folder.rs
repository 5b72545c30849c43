//! The contents of the plugin folder: which files are plugins, and whether a file has changed.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use toolbay_model::text::clean;
use toolbay_settings::similar_name::{fold_name, similar_toml_stems};

use crate::folder::description_limits::DescribeLimits;
use crate::folder::file_stamp::FileStamp;
use crate::folder::load_error::LoadError;
use crate::folder::plain_tree::{self, PlainTree, TreeKind};

/// Maximum number of files of a skill. Every client accepts this many.
const MAX_SKILL_FILES: usize = 512;

/// Stems of TOML files in a plugin folder that are not grants: the server's own configuration, and
/// where the plugins come from.
const OTHER_FILE_STEMS: [&str; 2] = ["toolbay", "toolbay.plugins"];

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
    let advice = match error.kind() {
        io::ErrorKind::PermissionDenied => {
            "; give that user the permissions to list it and to look into it (r and x)"
        }
        _ => "",
    };
    let user = rustix::process::geteuid().as_raw();
    Err(format!(
        "the plugin folder {} cannot be read as user {user}: {}{advice}",
        folder.display(),
        error.kind()
    ))
}

/// Checks that the entries of a folder can be accessed. Listing their names does not require that.
fn check_search_permission(folder: &Path) -> io::Result<()> {
    std::fs::metadata(folder.join(".")).map(drop)
}

/// Scans `folder`, if it exists. Follows symbolic links; in folders of plain files, only those that
/// stay within the folder. A problem with a single entry becomes a note in the listing. If
/// `only_plugin` is set, the listing contains only that plugin, exactly as it is in the folder.
///
/// # Errors
///
/// The folder itself cannot be read.
pub(crate) fn scan(
    folder: &Path,
    limits: &DescribeLimits,
    only_plugin: Option<&str>,
) -> io::Result<Option<FolderListing>> {
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
    let mut listing = FolderListing::default();
    let (mut components, mut trees) = (BTreeMap::new(), BTreeMap::<String, PlainTrees>::new());
    let mut grants = BTreeSet::new();
    let mut wits = BTreeSet::new();
    // The names of files that look like grants, by the ids of the plugins that they may be meant for.
    let mut similar = BTreeMap::new();
    for entry in entries {
        let name = entry?.file_name();
        for stem in name.to_str().map(similar_toml_stems).unwrap_or_default() {
            similar
                .entry(stem)
                .or_insert_with(Vec::new)
                .push(name.display().to_string());
        }
        let Some((id, part)) = parse_file_name(&name) else {
            if let Some(why) = misplaced_file_note(&name) {
                listing.add_note(&name.display(), &why);
            }
            continue;
        };
        let (kind, max_files) = match part {
            FileRole::Component => {
                match stat_component(&component_path(folder, id)) {
                    Ok(Some(component)) => drop(components.insert(id.to_owned(), component)),
                    // It was deleted after it was listed.
                    Ok(None) => {}
                    Err(why) => listing.add_note(&name.display(), &why),
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
            FileRole::Prompts => (TreeKind::Prompts, limits.prompts),
            FileRole::Resources => (TreeKind::Resources, limits.resources),
            FileRole::Skill => (TreeKind::Skill, MAX_SKILL_FILES),
        };
        if only_plugin.is_some_and(|only| only != id) {
            // Only its name is needed: a grant with this name belongs to it.
            if folder.join(&name).is_dir() {
                trees.entry(id.to_owned()).or_default();
            }
            continue;
        }
        match plain_tree::scan(&folder.join(&name), kind, max_files) {
            Some(tree) => {
                let trees = trees.entry(id.to_owned()).or_default();
                let slot = match kind {
                    TreeKind::Prompts => &mut trees.prompts,
                    TreeKind::Resources => &mut trees.resources,
                    TreeKind::Skill => &mut trees.skill,
                };
                *slot = Some(Arc::new(tree));
            }
            None => {
                if let Some(why) = folder_problem(&folder.join(&name)) {
                    listing.add_note(&name.display(), &why);
                }
            }
        }
    }
    let ids: BTreeSet<&String> = components.keys().chain(trees.keys()).collect();
    for id in ids {
        // Check only listed files: most plugins have neither, and a start may scan a thousand
        // plugins.
        let stamp_of = |names: &BTreeSet<String>, path: fn(&Path, &str) -> PathBuf| {
            let listed = names.contains(id).then(|| path(folder, id))?;
            // A dangling link counts as a file: the plugin is refused, instead of being served as
            // if it had no grant.
            let metadata =
                std::fs::metadata(&listed).or_else(|_| std::fs::symlink_metadata(&listed));
            metadata
                .ok()
                .map(|metadata| FileStamp::from_metadata(&metadata))
        };
        let grant = stamp_of(&grants, grant_path);
        let wit = stamp_of(&wits, wit_path);
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
        listing.plugins.insert(
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
        if !listing.plugins.contains_key(&id) && !OTHER_FILE_STEMS.contains(&id.as_str()) {
            let why = format!(
                "it is a grant, but there is no {id}.wasm, {id}.prompts, {id}.resources or {id}.skill"
            );
            listing.add_note(&format_args!("{id}.toml"), &why);
        }
    }
    if let Some(only) = only_plugin {
        listing.keep_only(only);
    }
    Ok(Some(listing))
}

/// The folders with plain files of one plugin.
#[derive(Clone, Default)]
struct PlainTrees {
    prompts: Option<Arc<PlainTree>>,
    resources: Option<Arc<PlainTree>>,
    skill: Option<Arc<PlainTree>>,
}

impl FolderListing {
    /// Removes the other plugins, and the notes about their files.
    fn keep_only(&mut self, plugin: &str) {
        self.plugins.retain(|id, _| id == plugin);
        let prefix = format!("{plugin}.");
        self.notes.retain(|name, _| name.starts_with(&prefix));
    }

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

/// Returns the note about a file that belongs to no plugin but was probably meant to belong to one.
fn misplaced_file_note(name: &OsStr) -> Option<String> {
    let lower = name.to_str().unwrap_or_default().to_ascii_lowercase();
    let plain_extensions = FileRole::ALL
        .iter()
        .filter(|(part, _)| part.is_plain())
        .map(|(_, right)| (*right, *right));
    let similar = MISSPELLED_EXTENSIONS
        .into_iter()
        .chain(plain_extensions)
        .find(|(misspelled, _)| strip_extension(OsStr::new(&lower), misspelled).is_some());
    if let Some((_, right)) = similar {
        return Some(format!("its name must end in {right} in lower case"));
    }
    if !similar_toml_stems(name.to_str().unwrap_or_default()).is_empty() {
        return Some(
            "it looks like a grant, which must be named after its plugin and end in .toml"
                .to_owned(),
        );
    }
    let bytes = name.as_encoded_bytes();
    let extension = bytes.get(bytes.len().checked_sub(".wasm".len())?..)?;
    if !extension.eq_ignore_ascii_case(b".wasm") || bytes.starts_with(b".") {
        return None;
    }
    Some(if name.to_str().is_none() {
        "its name is not valid UTF-8".to_owned()
    } else {
        "its name must end in .wasm in lower case".to_owned()
    })
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

/// Returns `name` without the extension. Temporary files and backups of editors, such as `.x.wasm`
/// and `x.wasm~`, are not plugins. The latter does not end in `.wasm` anyway.
fn strip_extension<'a>(name: &'a OsStr, extension: &str) -> Option<&'a str> {
    let stem = name.to_str()?.strip_suffix(extension)?;
    (!stem.is_empty() && !stem.starts_with('.')).then_some(stem)
}

/// Returns the path of a plugin's component.
pub fn component_path(folder: &Path, id: &str) -> PathBuf {
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
mod tests;
