//! Opens recording files.

use std::fs::File;
use std::io::{BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};
use rustix::io::Errno;

use crate::error::RecordingError;
use crate::reader::RecordingReader;

/// Recording file, opened for appending. A recording needs no other file system access, so a
/// process can drop its access to the directory after opening this.
#[derive(Debug)]
pub struct RecordingFile {
    pub(crate) file: File,
    pub(crate) path: PathBuf,
    /// Length of the file, in bytes.
    pub(crate) length: u64,
}

impl RecordingFile {
    /// Opens a file. Creates it with access only for this user if it does not exist. Writes
    /// nothing, except to end a partial line that a killed server left. Blocks.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be used, is readable by other users, is not a recording,
    /// or is in use by another server.
    pub fn open(path: &Path) -> Result<Self, RecordingError> {
        let (file, length) = open_for_append(path)?;
        Ok(Self {
            file,
            path: path.to_owned(),
            length,
        })
    }
}

/// Opens a file for appending, and returns it with its length. Creates it with access only for this
/// user if it does not exist.
///
/// # Errors
///
/// Returns an error if the file is not a recording, is readable by other users, or is in use by
/// another server.
fn open_for_append(path: &Path) -> Result<(File, u64), RecordingError> {
    let name = path.display();
    let record_error =
        |error: &dyn std::fmt::Display| RecordingError(format!("cannot record to {name}: {error}"));
    // A recording contains the arguments and results of tools. Do not follow symbolic links, and do
    // not allow other users to read it.
    if let Some(why) = invalid_format(path) {
        return Err(record_error(&why));
    }
    let flags = OFlags::RDWR
        | OFlags::CREATE
        | OFlags::APPEND
        | OFlags::NOFOLLOW
        | OFlags::CLOEXEC
        | OFlags::NONBLOCK;
    let opened = open(path, flags, Mode::RUSR | Mode::WUSR).map_err(|error| match error {
        Errno::LOOP => record_error(&"it is a link; give the path of the file itself"),
        error => record_error(&std::io::Error::from(error)),
    })?;
    let mut file = File::from(opened);
    let metadata = file.metadata().map_err(|error| record_error(&error))?;
    if !metadata.is_file() {
        return Err(record_error(&"it is not a file"));
    }
    if metadata.permissions().mode() & 0o077 != 0 {
        return Err(record_error(&format!(
            "others can use it (run `chmod 600 {name}`, or give another file)"
        )));
    }
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        return Err(record_error(&"it belongs to another user"));
    }
    flock(&file, FlockOperation::NonBlockingLockExclusive)
        .map_err(|_| record_error(&"another server records to it; give each a separate file"))?;
    let mut length = metadata.len();
    if length > 0 {
        RecordingReader::new(BufReader::new(&file)).map_err(|error| record_error(&error))?;
        // A killed server may have left a partial line.
        let mut last_byte = [0];
        file.seek(SeekFrom::End(-1))
            .and_then(|_| file.read_exact(&mut last_byte))
            .map_err(|error| record_error(&error))?;
        if last_byte != *b"\n" {
            file.write_all(b"\n")
                .map_err(|error| record_error(&error))?;
            length += 1;
        }
    }
    Ok((file, length))
}

/// Returns the reason that a file is not a recording; `None` if it is one, or if that cannot be
/// determined. This check precedes the advice to change the owner or the mode, which would be wrong
/// for a file of another kind.
fn invalid_format(path: &Path) -> Option<RecordingError> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = File::from(open(path, flags, Mode::empty()).ok()?);
    let metadata = file.metadata().ok()?;
    if !metadata.is_file() || metadata.len() == 0 {
        return None;
    }
    RecordingReader::new(BufReader::new(&file)).err()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    fn refused(path: &Path) -> String {
        open_for_append(path).unwrap_err().to_string()
    }

    #[test]
    fn new_file_is_private_and_used_by_one_server() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("calls.jsonl");
        let (file, length) = open_for_append(&path).unwrap();
        assert_eq!(
            (
                file.metadata().unwrap().permissions().mode() & 0o777,
                length
            ),
            (0o600, 0)
        );
        assert!(refused(&path).contains("another server records to it"));
        drop(file);
        open_for_append(&path).unwrap();
    }

    #[test]
    fn unsuitable_files_are_rejected_and_unchanged() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("calls.jsonl");
        fs::write(&path, "precious\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(
            refused(&path).contains("is not a recording"),
            "{}",
            refused(&path)
        );
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        assert!(
            refused(&path).contains("is not a recording"),
            "{}",
            refused(&path)
        );
        assert_eq!(fs::read_to_string(&path).unwrap(), "precious\n");
        let open = dir.path().join("open");
        fs::write(&open, "").unwrap();
        fs::set_permissions(&open, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(refused(&open).contains("chmod 600"));
        let link = dir.path().join("link");
        symlink(&path, &link).unwrap();
        assert!(refused(&link).contains("it is a link"));
        assert!(open_for_append(dir.path()).is_err());
        rustix::fs::mknodat(
            rustix::fs::CWD,
            dir.path().join("pipe"),
            rustix::fs::FileType::Fifo,
            Mode::RUSR | Mode::WUSR,
            0,
        )
        .unwrap();
        assert!(refused(&dir.path().join("pipe")).contains("it is not a file"));
        assert!(refused(&dir.path().join("none/calls")).contains("No such file"));
    }
}
