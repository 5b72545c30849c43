//! Secret file, and its value when it was last read.

use std::path::{Path, PathBuf};

use crate::file_reader::{FileChange, SecretFileStamp, read_if_changed};
use crate::value::SecretValue;

/// Secret file, and its value when it was last read.
#[derive(Debug)]
pub(crate) struct WatchedFile {
    path: PathBuf,
    /// Maximum size of the file, in bytes.
    max_bytes: usize,
    stamp: Option<SecretFileStamp>,
    /// Value, or the reason that there is none as the end of a sentence about the file.
    pub(crate) value: Result<SecretValue, String>,
}

impl WatchedFile {
    /// Creates an entry for the file `path`, which has not been read yet.
    pub(crate) fn new(path: PathBuf, max_bytes: usize) -> Self {
        Self {
            path,
            max_bytes,
            stamp: None,
            value: Err("has not been read".to_owned()),
        }
    }

    /// Reads the file again if it may have changed. `check` returns the reason that a value cannot
    /// be used. Returns whether the value has changed. Blocks.
    pub(crate) fn reload(
        &mut self,
        base: &Path,
        check: impl Fn(&SecretValue) -> Result<(), String>,
    ) -> bool {
        let value = match read_if_changed(base, &self.path, self.max_bytes, self.stamp.as_ref()) {
            Ok(FileChange::Unchanged) => return false,
            Ok(FileChange::Content(stamp, content)) => {
                self.stamp = Some(stamp);
                let value = SecretValue::parse(&content);
                value.and_then(|value| check(&value).map(|()| value))
            }
            Err(why) => {
                self.stamp = None;
                Err(why)
            }
        };
        let changed = value != self.value;
        self.value = value;
        changed
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_value_follows_its_file() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("token");
        let mut watched = WatchedFile::new(path.clone(), 100);
        let mut reload = || {
            let changed = watched.reload(root.path(), |_| Ok(()));
            (
                changed,
                watched
                    .value
                    .as_ref()
                    .map(|value| value.as_str().to_owned())
                    .map_err(Clone::clone),
            )
        };
        let private = || fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(reload(), (true, Err("does not exist".to_owned())));
        assert_eq!(reload(), (false, Err("does not exist".to_owned())));
        fs::write(&path, "value-one\n").unwrap();
        private();
        assert_eq!(reload(), (true, Ok("value-one".to_owned())));
        assert_eq!(reload(), (false, Ok("value-one".to_owned())));
        // The new value has the same length and is written within the same timestamp.
        fs::write(&path, "value-two\n").unwrap();
        assert_eq!(reload(), (true, Ok("value-two".to_owned())));
        fs::write(root.path().join("new"), "value-three").unwrap();
        fs::rename(root.path().join("new"), &path).unwrap();
        private();
        assert_eq!(reload(), (true, Ok("value-three".to_owned())));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        assert_eq!(
            reload(),
            (
                true,
                Err("is open to other users (mode 0644); make it 0600".to_owned())
            )
        );
        fs::remove_file(&path).unwrap();
        assert_eq!(reload(), (true, Err("does not exist".to_owned())));
    }
}
