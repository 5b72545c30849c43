//! What is in the plugin folder: which names are plugins, and how to tell that a file changed.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::Metadata;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The files of one plugin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Files {
    /// `<id>.wasm`.
    pub component: Fingerprint,
    /// `<id>.toml`, if there is one.
    pub grant: Option<Fingerprint>,
    /// `<id>.wit`, if there is one.
    pub wit: Option<Fingerprint>,
}

/// What changes when a file does: cheap to take, and enough to know when not to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fingerprint {
    length: u64,
    modified: Option<SystemTime>,
    /// Device, inode and change time: a replaced file differs even if its
    /// length and time of modification were made the same.
    identity: (u64, u64, i64, i64),
}

impl Fingerprint {
    fn of(metadata: &Metadata) -> Self {
        #[cfg(unix)]
        let identity = {
            use std::os::unix::fs::MetadataExt as _;
            (metadata.dev(), metadata.ino(), metadata.ctime(), metadata.ctime_nsec())
        };
        #[cfg(not(unix))]
        let identity = (0, 0, 0, 0);
        Self { length: metadata.len(), modified: metadata.modified().ok(), identity }
    }
}

/// Every plugin in `folder`, by id. Symlinks are followed.
///
/// # Errors
///
/// The folder cannot be read. A folder that is not there is empty, not an error.
pub fn scan(folder: &Path) -> io::Result<BTreeMap<String, Files>> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
        Err(error) => return Err(error),
    };
    let mut plugins = BTreeMap::new();
    for entry in entries {
        let name = entry?.file_name();
        let Some(id) = plugin_id(&name) else { continue };
        // Gone between listing and looking, or a symlink to nothing: not there.
        let Ok(metadata) = std::fs::metadata(component_path(folder, id)) else { continue };
        if metadata.is_dir() {
            continue;
        }
        let beside = |path: PathBuf| std::fs::metadata(path).ok().map(|metadata| Fingerprint::of(&metadata));
        let (grant, wit) = (beside(grant_path(folder, id)), beside(wit_path(folder, id)));
        plugins.insert(id.to_owned(), Files { component: Fingerprint::of(&metadata), grant, wit });
    }
    Ok(plugins)
}

/// The id of the plugin whose component is called `name`; `None` for every other file.
pub fn plugin_id(name: &OsStr) -> Option<&str> {
    stem(name, ".wasm")
}

/// The id of the plugin that a file called `name` belongs to, as its component or beside it.
pub fn owner(name: &OsStr) -> Option<&str> {
    plugin_id(name).or_else(|| stem(name, ".toml")).or_else(|| stem(name, ".wit"))
}

/// Files that are being written or that an editor keeps, such as `.x.wasm` and
/// `x.wasm~`, are not plugins; the latter does not end in `.wasm` anyway.
fn stem<'a>(name: &'a OsStr, extension: &str) -> Option<&'a str> {
    let stem = name.to_str()?.strip_suffix(extension)?;
    (!stem.is_empty() && !stem.starts_with('.')).then_some(stem)
}

/// Where a plugin's component is.
pub fn component_path(folder: &Path, id: &str) -> PathBuf {
    folder.join(format!("{id}.wasm"))
}

/// Where a plugin's grant is, if it has one.
pub fn grant_path(folder: &Path, id: &str) -> PathBuf {
    folder.join(format!("{id}.toml"))
}

/// Where the description of a plugin's functions is, if there is one.
pub fn wit_path(folder: &Path, id: &str) -> PathBuf {
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
    fn a_scan_follows_links_and_skips_what_is_no_file() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("plugins");
        assert!(scan(&folder).unwrap().is_empty(), "a folder that is not there is empty");
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(dir.path().join("elsewhere"), "x").unwrap();
        std::fs::write(folder.join("a.wasm"), "x").unwrap();
        std::fs::write(folder.join("a.toml"), "").unwrap();
        std::fs::create_dir(folder.join("folder.wasm")).unwrap();
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink("../elsewhere", folder.join("link.wasm")).unwrap();
            std::os::unix::fs::symlink("nowhere", folder.join("broken.wasm")).unwrap();
        }
        let plugins = scan(&folder).unwrap();
        assert_eq!(plugins.keys().collect::<Vec<_>>(), ["a", "link"]);
        assert!(plugins["a"].grant.is_some() && plugins["link"].grant.is_none());
    }

    #[test]
    fn a_replaced_file_has_another_fingerprint() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.wasm");
        std::fs::write(&path, "x").unwrap();
        let before = scan(dir.path()).unwrap();
        std::fs::write(dir.path().join("new"), "y").unwrap();
        std::fs::rename(dir.path().join("new"), &path).unwrap();
        assert_ne!(scan(dir.path()).unwrap(), before);
    }
}
