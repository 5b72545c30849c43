//! The directory of the log, which only its user can write to, and the names of its files.

use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, FlockOperation, Mode, OFlags, flock, fstat, fsync, openat, statat, unlinkat,
};
use rustix::io::Errno;
use toolbay_private::PrivateFolder;

use crate::error::AuditError;
use crate::part::LogPart;

/// Mode bits that grant read or write access to other users.
pub(crate) const OTHERS_ACCESS_MODE: u32 = 0o077;

/// Mode bits that grant write access to other users.
const OTHERS_WRITE_MODE: u32 = 0o022;

/// Name of the lock file. The server that writes the log holds the lock.
const LOCK_FILE_NAME: &str = "lock";

/// Suffix of the names of log files. A name consists of the name of the part, a hyphen, the number
/// of the first line, and this suffix.
const FILE_SUFFIX: &str = ".jsonl";

/// Number of digits of the line number in a file name. With a fixed width, names sort in the order
/// of their lines.
const FILE_NUMBER_DIGITS: usize = 20;

/// A directory that only this user can change.
#[derive(Debug)]
pub(crate) struct LogFolder {
    handle: OwnedFd,
    path: PathBuf,
}

impl LogFolder {
    /// Opens the directory. Creates it if it does not exist.
    ///
    /// # Errors
    ///
    /// Returns an error if the directory cannot be used, or if other users could change its
    /// contents or replace it.
    pub(crate) fn open(path: &Path) -> Result<Self, AuditError> {
        let PrivateFolder { handle, path } =
            PrivateFolder::open(path, "the audit log").map_err(AuditError)?;
        Ok(Self { handle, path })
    }

    /// Returns the path, for messages and for reading.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the directory handle.
    pub(crate) fn handle(&self) -> &OwnedFd {
        &self.handle
    }

    /// Locks the directory until the returned file is closed.
    ///
    /// # Errors
    ///
    /// Returns an error if another server writes to the directory.
    pub(crate) fn lock(&self) -> Result<File, AuditError> {
        let lock_error = |error: io::Error| AuditError::from_io("lock", &self.path, &error);
        let file = self
            .create(LOCK_FILE_NAME, OFlags::empty(), Mode::RUSR | Mode::WUSR)
            .map_err(lock_error)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(file),
            Err(Errno::WOULDBLOCK) => Err(AuditError(format!(
                "another server writes to the audit log in {}; give each server a separate folder (audit.folder)",
                self.path.display()
            ))),
            Err(error) => Err(lock_error(error.into())),
        }
    }

    /// Returns whether a directory entry with this name exists.
    pub(crate) fn contains(&self, name: &str) -> bool {
        statat(&self.handle, name, AtFlags::SYMLINK_NOFOLLOW).is_ok()
    }

    /// Opens a regular file of this user for reading. Returns the file and its mode.
    pub(crate) fn open_own(&self, name: &str) -> io::Result<(File, u32)> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        check_ownership(File::from(openat(
            &self.handle,
            name,
            flags,
            Mode::empty(),
        )?))
    }

    /// Opens a regular file of this user for writing. Creates it if it does not exist.
    pub(crate) fn create(&self, name: &str, flags: OFlags, mode: Mode) -> io::Result<File> {
        let flags = flags
            | OFlags::CREATE
            | OFlags::WRONLY
            | OFlags::NOFOLLOW
            | OFlags::NONBLOCK
            | OFlags::CLOEXEC;
        Ok(check_ownership(File::from(openat(&self.handle, name, flags, mode)?))?.0)
    }

    /// Waits until the entries of the directory are on the disk, if the file system supports this.
    pub(crate) fn sync(&self) {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        if let Ok(opened) = openat(&self.handle, ".", flags, Mode::empty()) {
            fsync(opened).ok();
        }
    }

    /// Deletes the file of `part` whose first line is `first`.
    pub(crate) fn remove_file(&self, part: LogPart, first: u64) -> io::Result<()> {
        Ok(unlinkat(
            &self.handle,
            file_name(part, first),
            AtFlags::empty(),
        )?)
    }
}

/// Returns the file and its mode if it is a regular file of this user that other users cannot write
/// to.
fn check_ownership(file: File) -> io::Result<(File, u32)> {
    let stat = fstat(&file)?;
    let is_regular = rustix::fs::FileType::from_raw_mode(stat.st_mode).is_file();
    if !is_regular
        || stat.st_uid != rustix::process::geteuid().as_raw()
        || stat.st_mode & OTHERS_WRITE_MODE != 0
    {
        let why = "it is not a regular file that only this user can write";
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    }
    Ok((file, stat.st_mode))
}

/// Opens a regular file for reading. Never waits for the writer of a FIFO.
pub(crate) fn open_to_read(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(openat(CWD, path, flags, Mode::empty())?);
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    Ok(file)
}

/// Returns the name of the file of `part` whose first line is `first`.
pub(crate) fn file_name(part: LogPart, first: u64) -> String {
    format!("{}-{first:0FILE_NUMBER_DIGITS$}{FILE_SUFFIX}", part.name())
}

/// Returns the numbers of the first lines of the files of a part, in ascending order.
pub(crate) fn list_files(folder: &Path, part: LogPart) -> io::Result<Vec<u64>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?.file_name();
        let digits = entry.to_str().and_then(|name| {
            name.strip_prefix(part.name())?
                .strip_prefix('-')?
                .strip_suffix(FILE_SUFFIX)
        });
        let digits = digits.filter(|digits| {
            digits.len() == FILE_NUMBER_DIGITS && digits.bytes().all(|byte| byte.is_ascii_digit())
        });
        found.extend(digits.and_then(|digits| digits.parse::<u64>().ok()));
    }
    found.sort_unstable();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_folder_that_others_can_write_to_is_not_used() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a/b");
        LogFolder::open(&path).unwrap();
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o700
        );
        fs::set_permissions(&path, fs::Permissions::from_mode(0o770)).unwrap();
        let error = LogFolder::open(&path).unwrap_err().to_string();
        assert!(
            error.ends_with("b is writable by other users (mode 770; to fix it, run chmod go-w)"),
            "{error}"
        );
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
        fs::set_permissions(dir.path().join("a"), fs::Permissions::from_mode(0o777)).unwrap();
        let error = LogFolder::open(&path).unwrap_err().to_string();
        assert!(
            error.ends_with("a is writable by other users (mode 777; to fix it, run chmod go-w)"),
            "{error}"
        );
        let file = dir.path().join("file");
        fs::write(&file, "").unwrap();
        assert!(LogFolder::open(&file).is_err());
    }

    #[test]
    fn a_fifo_is_not_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("fifo");
        rustix::fs::mkfifoat(CWD, &path, Mode::RUSR | Mode::WUSR).unwrap();
        for other in [&path, dir.path()] {
            let error = open_to_read(other).unwrap_err().to_string();
            assert_eq!(error, "it is not a regular file");
        }
        fs::write(dir.path().join("file"), "").unwrap();
        open_to_read(&dir.path().join("file")).unwrap();
    }

    #[test]
    fn only_one_server_can_write() {
        let dir = tempfile::tempdir().unwrap();
        let folder = LogFolder::open(dir.path()).unwrap();
        let lock = folder.lock().unwrap();
        let error = LogFolder::open(dir.path())
            .unwrap()
            .lock()
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("another server writes to the audit log in "),
            "{error}"
        );
        drop(lock);
        folder.lock().unwrap();
    }

    #[test]
    fn files_are_in_line_order_and_other_files_are_ignored() {
        let dir = tempfile::tempdir().unwrap();
        for other in [
            "audit-1.jsonl",
            "key",
            "audit-0000000000000000000x.jsonl",
            "notes",
        ] {
            fs::write(dir.path().join(other), "").unwrap();
        }
        for first in [100, 9, u64::MAX, 1] {
            fs::write(dir.path().join(file_name(LogPart::Main, first)), "").unwrap();
        }
        fs::write(dir.path().join(file_name(LogPart::Rejected, 7)), "").unwrap();
        assert_eq!(
            list_files(dir.path(), LogPart::Main).unwrap(),
            [1, 9, 100, u64::MAX]
        );
        assert_eq!(list_files(dir.path(), LogPart::Rejected).unwrap(), [7]);
    }
}
