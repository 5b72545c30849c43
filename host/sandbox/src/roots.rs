//! The folders that a plugin's mounts name: opened once, without following links, and held.
//!
//! A mount's path is the operator's only at the moment at which the plugin is loaded: whoever can write to a folder
//! above it can later put a link there. So the path is followed once, component by component, each through the handle
//! of the one before it, and none may be a link. Only the plugin folder, to which relative paths are relative, may be
//! reached through links, because the operator names it to the server. Calls use the handle.

use std::fmt;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Component, Path};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, fstat, openat, statat};
use rustix::io::Errno;
use toolbay_policy::{Access, Mount};
use wasmtime_wasi::OpenMode;
use wasmtime_wasi::filesystem::{Dir, FsPerms};

/// How each folder on the way is opened.
const STEP: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// The folders of a plugin's mounts. Clones share the handles.
#[derive(Clone, Debug, Default)]
pub struct Roots(Arc<[Root]>);

struct Root {
    mount: Mount,
    /// `None` as long as the folder does not exist.
    held: Mutex<Option<Dir>>,
}

impl Roots {
    /// The folders of these mounts. Opens none yet.
    pub fn new(mounts: &[Mount]) -> Self {
        Self(mounts.iter().map(|mount| Root { mount: mount.clone(), held: Mutex::default() }).collect())
    }

    /// Opens the folders, and returns a warning for each that cannot be used. The first call after it was created or
    /// put right opens it then. Blocks.
    pub fn open(&self) -> Vec<String> {
        self.0.iter().filter_map(|root| root.folder().err().map(|why| root.complaint(&why))).collect()
    }

    /// The folders with their paths in the guest.
    ///
    /// # Errors
    ///
    /// One of them cannot be used; the text addresses the operator.
    pub(crate) fn folders(&self) -> Result<Vec<(Dir, String)>, String> {
        let folder = |root: &Root| match root.folder() {
            Ok(folder) => Ok((folder, root.mount.guest.clone())),
            Err(why) => Err(root.complaint(&why)),
        };
        self.0.iter().map(folder).collect()
    }
}

/// Equal if calls reach the same folders.
impl PartialEq for Roots {
    fn eq(&self, other: &Self) -> bool {
        let same = |(one, two): (&Root, &Root)| one.mount == two.mount && one.identity() == two.identity();
        self.0.len() == other.0.len() && self.0.iter().zip(other.0.iter()).all(same)
    }
}

impl Root {
    /// The folder that is held, or that is opened now. The error is the end of a sentence about the folder.
    fn folder(&self) -> Result<Dir, String> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(folder) = held.as_ref()
            // One that was deleted can come back.
            && fstat(&*folder.dir).is_ok_and(|found| found.st_nlink > 0)
        {
            return Ok(folder.clone());
        }
        *held = None;
        let (perms, mode) = match self.mount.access {
            Access::Read => (FsPerms::ReadOnly, OpenMode::READ),
            Access::ReadWrite => (FsPerms::ReadWrite, OpenMode::READ | OpenMode::WRITE),
        };
        let folder = Dir::new(File::from(open(&self.mount.base, &self.mount.host)?), perms, mode, false);
        Ok(held.insert(folder).clone())
    }

    /// The device and inode of the folder that is held.
    fn identity(&self) -> Option<(u64, u64)> {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let found = fstat(&*held.as_ref()?.dir).ok()?;
        Some((found.st_dev, found.st_ino))
    }

    fn complaint(&self, why: &str) -> String {
        let Mount { written, guest, place, .. } = &self.mount;
        format!("cannot mount the folder {} at {guest}: it {why} ({place})", written.display())
    }
}

impl fmt::Debug for Root {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Root").field("mount", &self.mount).field("held", &self.identity()).finish()
    }
}

/// Opens the folder `path` without following links. What `path` has of `base` is followed as it is.
fn open(base: &Path, path: &Path) -> Result<OwnedFd, String> {
    let (start, rest) = match path.strip_prefix(base) {
        Ok(rest) if base.as_os_str().is_empty() && path.is_relative() => (Path::new("."), rest),
        Ok(rest) if !base.as_os_str().is_empty() => (base, rest),
        _ => (Path::new("/"), path),
    };
    let mut folder = openat(CWD, start, STEP, Mode::empty()).map_err(unusable)?;
    for component in rest.components() {
        let name = match component {
            Component::RootDir | Component::CurDir | Component::Prefix(_) => continue,
            Component::ParentDir => "..".as_ref(),
            Component::Normal(name) => name,
        };
        folder = match openat(&folder, name, STEP | OFlags::NOFOLLOW, Mode::empty()) {
            Ok(next) => next,
            Err(Errno::NOTDIR | Errno::LOOP) if is_link(&folder, name) => {
                return Err("is reached through a symbolic link; write the path that the link leads to".to_owned());
            }
            Err(error) => return Err(unusable(error)),
        };
    }
    Ok(folder)
}

fn is_link(folder: &OwnedFd, name: &std::ffi::OsStr) -> bool {
    let found = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW);
    found.is_ok_and(|found| FileType::from_raw_mode(found.st_mode).is_symlink())
}

/// Why a folder cannot be used, as the end of a sentence about it.
fn unusable(error: Errno) -> String {
    match error {
        Errno::NOENT => "does not exist".to_owned(),
        Errno::NOTDIR => "is not a folder".to_owned(),
        Errno::ACCESS => "cannot be opened by the server: permission denied".to_owned(),
        error => format!("cannot be opened: {}", io::Error::from(error)),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt as _, symlink};

    use super::*;

    fn roots(base: &Path, host: &str) -> Roots {
        let mount = Mount {
            host: base.join(host),
            base: base.to_owned(),
            guest: "/data".to_owned(),
            access: Access::Read,
            unguarded: false,
            written: host.into(),
            place: "a.toml:1".to_owned(),
        };
        Roots::new(&[mount])
    }

    fn inode(roots: &Roots) -> Result<u64, String> {
        roots.folders().map(|folders| fstat(&*folders[0].0.dir).unwrap().st_ino)
    }

    fn is_at(path: &Path) -> u64 {
        fs::metadata(path).unwrap().ino()
    }

    /// `real/plugins`, `real/data/deep`, and links to each of them.
    fn tree() -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("real/plugins")).unwrap();
        fs::create_dir_all(root.path().join("real/data/deep")).unwrap();
        symlink("real", root.path().join("link")).unwrap();
        symlink("data", root.path().join("real/linked")).unwrap();
        root
    }

    #[test]
    fn a_path_may_not_lead_through_a_link_below_the_plugin_folder() {
        let root = tree();
        // The way to the plugin folder is the operator's own.
        let base = root.path().join("link/plugins");
        let deep = is_at(&root.path().join("real/data/deep"));
        assert_eq!(inode(&roots(&base, "../data/deep")), Ok(deep));
        assert_eq!(inode(&roots(&base, "./..//data/deep/.")), Ok(deep));
        assert_eq!(inode(&roots(&base, ".")), Ok(is_at(&root.path().join("real/plugins"))));
        assert_eq!(inode(&roots(&base, root.path().join("real/data/deep").to_str().unwrap())), Ok(deep));
        let absolute = root.path().join("link/data/deep");
        for host in ["../linked", "../linked/deep", absolute.to_str().unwrap()] {
            let why = inode(&roots(&base, host)).unwrap_err();
            let expected = format!(
                "cannot mount the folder {host} at /data: it is reached through a symbolic link; write the path that the \
                 link leads to (a.toml:1)"
            );
            assert_eq!(why, expected);
            assert_eq!(roots(&base, host).open(), [expected]);
        }
    }

    #[test]
    fn an_open_folder_stays_the_same_when_a_link_takes_its_place() {
        let root = tree();
        let roots = roots(&root.path().join("real/plugins"), "../data");
        assert!(roots.open().is_empty());
        let data = root.path().join("real/data");
        let first = is_at(&data);
        fs::rename(&data, root.path().join("real/moved")).unwrap();
        symlink("/", &data).unwrap();
        assert_eq!(inode(&roots), Ok(first));
    }

    #[test]
    fn a_folder_is_opened_when_it_exists_and_again_when_it_was_deleted() {
        let root = tree();
        let roots = roots(&root.path().join("real/plugins"), "../later");
        let later = root.path().join("real/later");
        assert_eq!(roots.open(), [inode(&roots).unwrap_err()]);
        assert!(inode(&roots).unwrap_err().contains("it does not exist"));
        fs::write(&later, "").unwrap();
        assert!(inode(&roots).unwrap_err().contains("it is not a folder"));
        fs::remove_file(&later).unwrap();
        fs::create_dir(&later).unwrap();
        assert_eq!(inode(&roots), Ok(is_at(&later)));
        fs::remove_dir(&later).unwrap();
        symlink("/", &later).unwrap();
        assert!(inode(&roots).unwrap_err().contains("through a symbolic link"));
        fs::remove_file(&later).unwrap();
        fs::create_dir(&later).unwrap();
        assert_eq!(inode(&roots), Ok(is_at(&later)));
    }

    #[test]
    fn roots_are_equal_if_they_reach_the_same_folder() {
        let root = tree();
        let base = root.path().join("real/plugins");
        let (one, two) = (roots(&base, "../data"), roots(&base, "../data"));
        assert_eq!(one, two);
        one.open();
        assert_ne!(one, two);
        two.open();
        assert_eq!(one, two);
        fs::rename(root.path().join("real/data"), root.path().join("real/moved")).unwrap();
        fs::create_dir(root.path().join("real/data")).unwrap();
        let three = roots(&base, "../data");
        three.open();
        assert_ne!(one, three);
    }
}
