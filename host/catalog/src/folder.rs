//! The contents of the plugin folder: which files are plugins, and whether a file has changed.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt::Display;
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use toolbay_model::text::clean;

/// The files of one plugin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Files {
    /// `<id>.wasm`.
    pub component: Fingerprint,
    /// `<id>.toml`, if there is one.
    pub grant: Option<Fingerprint>,
    /// `<id>.wit`, if there is one.
    pub wit: Option<Fingerprint>,
}

/// Differs whenever a file has changed. Cheap to take, so that unchanged files need not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fingerprint {
    length: u64,
    modified: Option<SystemTime>,
    /// Device, inode and change time, so that a replaced file differs even if its length and modification time were
    /// made equal.
    identity: (u64, u64, i64, i64),
}

impl Fingerprint {
    fn of(metadata: &Metadata) -> Self {
        let identity = (metadata.dev(), metadata.ino(), metadata.ctime(), metadata.ctime_nsec());
        Self { length: metadata.len(), modified: metadata.modified().ok(), identity }
    }
}

/// The contents of the folder.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Found {
    /// Every plugin, by id.
    pub plugins: BTreeMap<String, Files>,
    /// Files that are not plugins or grants but were probably meant to be: by name, with the reason.
    pub notes: BTreeMap<String, String>,
}

/// Scans `folder`, if it exists. Follows symbolic links.
///
/// # Errors
///
/// The folder cannot be read.
pub(crate) fn scan(folder: &Path) -> io::Result<Option<Found>> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        // A file with the folder's name is not a folder either.
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    let mut found = Found::default();
    let mut grants = Vec::new();
    for entry in entries {
        let name = entry?.file_name();
        let Some(id) = plugin_id(&name) else {
            if let Some(why) = note(&name) {
                found.note(&name.display(), &why);
            }
            grants.extend(stem(&name, ".toml").map(str::to_owned));
            continue;
        };
        match look(&component_path(folder, id)) {
            Ok(Some(component)) => {
                let beside = |path: PathBuf| std::fs::metadata(path).ok().map(|metadata| Fingerprint::of(&metadata));
                let (grant, wit) = (beside(grant_path(folder, id)), beside(wit_path(folder, id)));
                found.plugins.insert(id.to_owned(), Files { component, grant, wit });
            }
            // It was deleted after it was listed.
            Ok(None) => {}
            Err(why) => found.note(&name.display(), &why),
        }
    }
    for id in grants {
        // The plugin folder may contain the server's own configuration.
        if !found.plugins.contains_key(&id) && id != "toolbay" {
            found.note(&format_args!("{id}.toml"), &format!("it is a grant, but there is no {id}.wasm"));
        }
    }
    Ok(Some(found))
}

impl Found {
    /// Names are shown without control characters.
    fn note(&mut self, name: &dyn Display, why: &str) {
        self.notes.insert(clean(&name.to_string()).into_owned(), clean(why).into_owned());
    }
}

/// Checks a file whose name is that of a component.
fn look(path: &Path) -> Result<Option<Fingerprint>, String> {
    match std::fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => Err("it is a folder".to_owned()),
        Ok(metadata) => Ok(Some(Fingerprint::of(&metadata))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => match std::fs::read_link(path) {
            Ok(target) => Err(format!("it is a link to {}, which does not exist", target.display())),
            Err(_) => Ok(None),
        },
        // Such as a link to itself.
        Err(error) => Err(format!("it cannot be read: {}", error.kind())),
    }
}

/// The note about a file whose name is neither that of a component nor that of a grant.
fn note(name: &OsStr) -> Option<String> {
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

/// The id of the plugin whose component has the file name `name`; `None` for all other files.
pub(crate) fn plugin_id(name: &OsStr) -> Option<&str> {
    stem(name, ".wasm")
}

/// The id of the plugin to which the file `name` belongs, as its component or as a file beside it.
pub(crate) fn owner(name: &OsStr) -> Option<&str> {
    plugin_id(name).or_else(|| stem(name, ".toml")).or_else(|| stem(name, ".wit"))
}

/// Files such as `.x.wasm` and `x.wasm~`, which are still being written or which editors keep, are not plugins. The
/// latter does not end in `.wasm` anyway.
fn stem<'a>(name: &'a OsStr, extension: &str) -> Option<&'a str> {
    let stem = name.to_str()?.strip_suffix(extension)?;
    (!stem.is_empty() && !stem.starts_with('.')).then_some(stem)
}

/// The path of a plugin's component.
pub(crate) fn component_path(folder: &Path, id: &str) -> PathBuf {
    folder.join(format!("{id}.wasm"))
}

/// The path of a plugin's grant, which may not exist.
pub(crate) fn grant_path(folder: &Path, id: &str) -> PathBuf {
    folder.join(format!("{id}.toml"))
}

/// The path of the `.wit` file with the description of a plugin's functions, which may not exist.
pub(crate) fn wit_path(folder: &Path, id: &str) -> PathBuf {
    folder.join(format!("{id}.wit"))
}

#[cfg(test)]
mod tests {
    use super::*;

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
            assert_eq!(plugin_id(OsStr::new(name)), id, "{name}");
        }
        assert_eq!(owner(OsStr::new("weather.toml")), Some("weather"));
        assert_eq!(owner(OsStr::new("weather.wit")), Some("weather"));
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
        let Found { plugins, notes } = scan(&folder).unwrap().unwrap();
        assert_eq!(plugins.keys().collect::<Vec<_>>(), ["a", "link"]);
        assert!(plugins["a"].grant.is_some() && plugins["link"].grant.is_none());
        assert_eq!(notes["folder.wasm"], "it is a folder");
        assert_eq!(notes["broken.wasm"], "it is a link to nowhere, which does not exist");
    }

    #[test]
    fn only_files_that_were_probably_meant_as_plugins_are_noted() {
        use std::os::unix::ffi::OsStrExt as _;
        let dir = tempfile::tempdir().unwrap();
        for name in ["LOUD.WASM", "lonely.toml", "toolbay.toml", "readme.md", ".hidden.WASM", "a.wasm~", "wasm"] {
            std::fs::write(dir.path().join(name), "").unwrap();
        }
        std::fs::write(dir.path().join(OsStr::from_bytes(b"\xff.wasm")), "").unwrap();
        std::os::unix::fs::symlink("loop.wasm", dir.path().join("loop.wasm")).unwrap();
        let Found { plugins, notes } = scan(dir.path()).unwrap().unwrap();
        assert!(plugins.is_empty(), "{plugins:?}");
        let notes: Vec<String> = notes.iter().map(|(name, why)| format!("{name}: {why}")).collect();
        insta::assert_snapshot!(notes.join("\n"), @r#"
        LOUD.WASM: its name must end in .wasm in lower case
        lonely.toml: it is a grant, but there is no lonely.wasm
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
}
