//! Server directories that other users cannot change. They are opened once and checked by
//! descriptor up to the root of the file system.
//!
//! The compile cache and the state of plugins are stored in such directories. This crate does not
//! depend on either: its caller states the purpose of the directory. A directory can also have a
//! secret `key`.

mod key;

use std::fs::{self, DirBuilder};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags, Stat, fstat, openat, unlinkat};

pub use self::key::KEY_BYTES;

/// Prefix of the name of a file that is being written.
pub const TEMPORARY_PREFIX: &str = ".tmp-";

/// Flags for opening each directory on the path: only for traversal, and without following symbolic
/// links.
const TRAVERSAL_FLAGS: OFlags = OFlags::PATH
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// Mode bits that let other users write.
const OTHERS_WRITE_BITS: u32 = 0o022;

/// Sticky bit. In a directory with this bit, such as `/tmp`, users cannot move each other's files.
const STICKY_BIT: u32 = 0o1000;

/// Directory that only this user can change or replace.
#[derive(Debug)]
pub struct PrivateFolder {
    /// Handle of the directory.
    pub handle: OwnedFd,
    /// Path of the directory, without symbolic links.
    pub path: PathBuf,
}

impl PrivateFolder {
    /// Opens the directory, and creates it if necessary. `content` describes its content in the
    /// log, such as `compiled components`.
    ///
    /// # Errors
    ///
    /// Returns a one-line error if another user could change or replace the directory, or if it
    /// cannot be used.
    pub fn open(folder: &Path, content: &str) -> Result<Self, String> {
        let folder_error = |error: io::Error| format!("cannot use {}: {error}", folder.display());
        if !folder.exists() {
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(folder)
                .map_err(folder_error)?;
            tracing::info!("created the folder {} for {content}", folder.display());
        }
        // Symbolic links on the path are resolved here, once. The resulting path must contain none,
        // and each directory is checked by the handle through which the next one is opened.
        let path = fs::canonicalize(folder).map_err(folder_error)?;
        let root = openat(CWD, "/", TRAVERSAL_FLAGS, Mode::empty())
            .map_err(|error| folder_error(error.into()))?;
        // The owner of the root can replace everything. In a container, the owner may be an unknown
        // user.
        let trusted = [
            rustix::process::geteuid().as_raw(),
            0,
            stat(&root).map_err(folder_error)?.st_uid,
        ];
        let mut handle = root;
        let mut checked_path = PathBuf::from("/");
        for component in path.components() {
            let Component::Normal(name) = component else {
                continue;
            };
            check_ancestor(
                &stat(&handle).map_err(folder_error)?,
                &checked_path,
                &trusted,
            )?;
            handle = openat(&handle, name, TRAVERSAL_FLAGS, Mode::empty())
                .map_err(|error| folder_error(error.into()))?;
            checked_path.push(name);
        }
        check_ownership(&stat(&handle).map_err(folder_error)?, &path)?;
        Ok(Self { handle, path })
    }

    /// Opens a file in the directory for reading. It must be a regular file that this user owns and
    /// that other users cannot write.
    ///
    /// # Errors
    ///
    /// Returns an error if the file does not meet these conditions or cannot be opened.
    pub fn open_file(&self, name: &str) -> io::Result<(fs::File, Stat)> {
        self.open_checked(name, OFlags::RDONLY)
    }

    /// Like [`Self::open_file`], for reading and writing.
    ///
    /// # Errors
    ///
    /// See [`PrivateFolder::open_file`].
    pub fn open_to_write(&self, name: &str) -> io::Result<fs::File> {
        Ok(self.open_checked(name, OFlags::RDWR)?.0)
    }

    /// Like [`Self::open_file`], for reading and appending. Creates a file that does not exist,
    /// with access only for this user.
    ///
    /// # Errors
    ///
    /// See [`PrivateFolder::open_file`].
    pub fn open_to_append(&self, name: &str) -> io::Result<fs::File> {
        Ok(self
            .open_checked(name, OFlags::RDWR | OFlags::APPEND | OFlags::CREATE)?
            .0)
    }

    /// Like [`Self::open_file`], for reading and writing. Creates a file that does not exist, with
    /// access only for this user.
    ///
    /// # Errors
    ///
    /// See [`PrivateFolder::open_file`].
    pub fn open_or_create(&self, name: &str) -> io::Result<fs::File> {
        Ok(self.open_checked(name, OFlags::RDWR | OFlags::CREATE)?.0)
    }

    /// Returns the names of the files in the directory.
    ///
    /// # Errors
    ///
    /// Returns an error if the directory cannot be read.
    pub fn file_names(&self) -> io::Result<Vec<String>> {
        let folder = openat(
            &self.handle,
            ".",
            OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC,
            Mode::empty(),
        )?;
        let entries = Dir::new(folder)?
            .map(|entry| Ok(entry?.file_name().to_str().unwrap_or_default().to_owned()));
        entries.collect()
    }

    /// Removes a file from the directory.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no such file or it cannot be removed.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        Ok(unlinkat(&self.handle, name, AtFlags::empty())?)
    }

    fn open_checked(&self, name: &str, access: OFlags) -> io::Result<(fs::File, Stat)> {
        let flags = access | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = openat(&self.handle, name, flags, Mode::RUSR | Mode::WUSR)?;
        let metadata = fstat(&file)?;
        let is_regular = rustix::fs::FileType::from_raw_mode(metadata.st_mode).is_file();
        if !is_regular
            || metadata.st_uid != rustix::process::geteuid().as_raw()
            || metadata.st_mode & OTHERS_WRITE_BITS != 0
        {
            let why = "it is not a regular file that only this user can write";
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
        }
        Ok((file.into(), metadata))
    }
}

fn stat(folder: &OwnedFd) -> io::Result<Stat> {
    Ok(fstat(folder)?)
}

/// Checks that only trusted users can replace entries of this ancestor directory.
fn check_ancestor(metadata: &Stat, path: &Path, trusted: &[u32]) -> Result<(), String> {
    if !trusted.contains(&metadata.st_uid) {
        return Err(other_owner_message(path));
    }
    if metadata.st_mode & OTHERS_WRITE_BITS != 0 && metadata.st_mode & STICKY_BIT == 0 {
        return Err(writable_message(metadata, path));
    }
    Ok(())
}

/// Checks that no other user can change the directory itself.
fn check_ownership(metadata: &Stat, path: &Path) -> Result<(), String> {
    if metadata.st_uid != rustix::process::geteuid().as_raw() {
        return Err(other_owner_message(path));
    }
    if metadata.st_mode & OTHERS_WRITE_BITS != 0 {
        return Err(writable_message(metadata, path));
    }
    Ok(())
}

fn other_owner_message(path: &Path) -> String {
    format!("{} belongs to another user", path.display())
}

fn writable_message(metadata: &Stat, path: &Path) -> String {
    let mode = metadata.st_mode & 0o777;
    format!(
        "{} is writable by other users (mode {mode:o}; to fix it, run chmod go-w)",
        path.display()
    )
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn every_ancestor_must_be_safe() {
        let root = tempfile::tempdir().unwrap();
        let deep = root.path().join("a/b/c/d");
        fs::create_dir_all(&deep).unwrap();
        for path in ["a", "a/b", "a/b/c", "a/b/c/d"].map(|path| root.path().join(path)) {
            set_mode(&path, 0o770);
            let error = PrivateFolder::open(&deep, "tests").unwrap_err();
            let expected = fs::canonicalize(&path).unwrap();
            assert_eq!(error, writable_message(&stat_of(&path), &expected));
            set_mode(&path, 0o700);
        }
        PrivateFolder::open(&deep, "tests").unwrap();
    }

    fn stat_of(path: &Path) -> Stat {
        rustix::fs::stat(path).unwrap()
    }

    #[test]
    fn target_of_a_symbolic_link_is_checked() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("open/store")).unwrap();
        symlink("open", root.path().join("link")).unwrap();
        let store = root.path().join("link/store");
        assert_eq!(
            PrivateFolder::open(&store, "tests").unwrap().path,
            fs::canonicalize(root.path().join("open/store")).unwrap()
        );
        set_mode(&root.path().join("open"), 0o777);
        assert!(
            PrivateFolder::open(&store, "tests")
                .unwrap_err()
                .contains("open is writable by other users")
        );
    }

    #[test]
    fn a_file_that_is_a_link_a_fifo_or_writable_by_others_is_not_opened() {
        let root = tempfile::tempdir().unwrap();
        let private = PrivateFolder::open(root.path(), "tests").unwrap();
        fs::write(root.path().join("file"), "x").unwrap();
        set_mode(&root.path().join("file"), 0o644);
        private.open_file("file").unwrap();
        private.open_to_write("file").unwrap();
        symlink("file", root.path().join("link")).unwrap();
        let fifo = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(&private.handle, "fifo", fifo, Mode::from_raw_mode(0o600), 0).unwrap();
        fs::write(root.path().join("open"), "x").unwrap();
        set_mode(&root.path().join("open"), 0o666);
        for name in ["link", "fifo", "open", "missing"] {
            assert!(private.open_file(name).is_err(), "{name}");
            assert!(private.open_to_write(name).is_err(), "{name}");
        }
        for name in ["link", "fifo", "open"] {
            assert!(private.open_to_append(name).is_err(), "{name}");
            assert!(private.open_or_create(name).is_err(), "{name}");
        }
    }

    #[test]
    fn a_file_is_created_once_and_overwritten_in_place() {
        let root = tempfile::tempdir().unwrap();
        let private = PrivateFolder::open(root.path(), "tests").unwrap();
        for text in ["long", "new"] {
            private
                .open_or_create("file")
                .unwrap()
                .write_all(text.as_bytes())
                .unwrap();
        }
        assert_eq!(
            fs::read_to_string(root.path().join("file")).unwrap(),
            "newg"
        );
        assert_eq!(
            fs::metadata(root.path().join("file"))
                .unwrap()
                .permissions()
                .mode()
                & 0o777,
            0o600
        );
    }

    #[test]
    fn appended_data_can_be_read_and_removed() {
        let root = tempfile::tempdir().unwrap();
        let private = PrivateFolder::open(root.path(), "tests").unwrap();
        for text in ["one ", "two"] {
            private
                .open_to_append("log")
                .unwrap()
                .write_all(text.as_bytes())
                .unwrap();
        }
        assert_eq!(
            fs::read_to_string(root.path().join("log")).unwrap(),
            "one two"
        );
        assert_eq!(
            fs::metadata(root.path().join("log"))
                .unwrap()
                .permissions()
                .mode()
                & 0o777,
            0o600
        );
        assert!(private.file_names().unwrap().contains(&"log".to_owned()));
        private.remove("log").unwrap();
        assert!(
            private.remove("log").is_err()
                && !private.file_names().unwrap().contains(&"log".to_owned())
        );
    }
}
