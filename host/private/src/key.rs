//! Secret key in a private directory: created once, and shared by every server that uses the
//! directory.

use std::fs::File;
use std::io::{self, Read as _, Write as _};

use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags, openat, renameat, renameat_with, unlinkat};
use rustix::io::Errno;

use crate::{PrivateFolder, TEMPORARY_PREFIX};

/// Length of a key, in bytes.
pub const KEY_BYTES: usize = 32;

/// Mode bits that let other users read or write.
const OTHERS_ACCESS_BITS: u32 = 0o077;

impl PrivateFolder {
    /// Reads the key in the file `name`. Creates a new key if there is none, or if other users
    /// could have read the existing one. In the second case, data signed with the old key becomes
    /// invalid; `consequence` describes the effect in the log.
    ///
    /// # Errors
    ///
    /// Returns an error if the directory cannot be read or written.
    pub fn load_or_create_key(&self, name: &str, consequence: &str) -> io::Result<[u8; KEY_BYTES]> {
        match self.read_key(name) {
            Ok(Some(key)) => return Ok(key),
            Ok(None) => {
                tracing::warn!(
                    "the key {} could have been read or changed by others, or is damaged: a new one replaces it, and \
                     {consequence}",
                    self.path.join(name).display()
                );
                self.create_key(name, true)?;
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.create_key(name, false)?;
            }
            Err(error) => return Err(error),
        }
        self.read_new_key(name)
    }

    /// Replaces the key in the file `name` by a new one. Data signed with the old key becomes
    /// invalid.
    ///
    /// # Errors
    ///
    /// Returns an error if the directory cannot be read or written.
    pub fn replace_key(&self, name: &str) -> io::Result<[u8; KEY_BYTES]> {
        self.create_key(name, true)?;
        self.read_new_key(name)
    }

    fn read_new_key(&self, name: &str) -> io::Result<[u8; KEY_BYTES]> {
        self.read_key(name)?
            .ok_or_else(|| io::Error::other("the key changes while it is being read"))
    }

    /// Reads the key; `None` if it must not be used.
    fn read_key(&self, name: &str) -> io::Result<Option<[u8; KEY_BYTES]>> {
        let (file, stat) = match self.open_file(name) {
            Ok(opened) => opened,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(error),
            // A symbolic link, another user's file or a FIFO is not a key of this server.
            Err(_) => return Ok(None),
        };
        let mut bytes = Vec::new();
        file.take(KEY_BYTES as u64 + 1).read_to_end(&mut bytes)?;
        Ok(bytes
            .try_into()
            .ok()
            .filter(|_| stat.st_mode & OTHERS_ACCESS_BITS == 0))
    }

    /// Writes a new key to a temporary file first, so that no partial key can be read. If
    /// `replaces` is false, a key that another server created in the meantime is kept.
    fn create_key(&self, name: &str, replaces: bool) -> io::Result<()> {
        let mut random = [0; KEY_BYTES + 8];
        getrandom::fill(&mut random)
            .map_err(|_| io::Error::other("the system provides no random bytes"))?;
        let (key, number) = random.split_at(KEY_BYTES);
        let suffix = number
            .iter()
            .fold(0, |bits: u64, byte| bits << 8 | u64::from(*byte));
        let temporary = format!("{TEMPORARY_PREFIX}key-{suffix:x}");
        let flags =
            OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut file = File::from(openat(
            &self.handle,
            &temporary,
            flags,
            Mode::RUSR | Mode::WUSR,
        )?);
        let result = file
            .write_all(key)
            .and_then(|()| file.sync_all())
            .and_then(|()| {
                let rename = || renameat(&self.handle, &temporary, &self.handle, name);
                if replaces {
                    return Ok(rename()?);
                }
                match renameat_with(
                    &self.handle,
                    &temporary,
                    &self.handle,
                    name,
                    RenameFlags::NOREPLACE,
                ) {
                    // Not every file system supports this flag. If two servers create a key at the
                    // same time, the later one wins.
                    Err(Errno::INVAL | Errno::NOSYS) => Ok(rename()?),
                    renamed => Ok(renamed?),
                }
            });
        match result {
            Ok(()) => Ok(()),
            Err(error) => {
                unlinkat(&self.handle, &temporary, AtFlags::empty()).ok();
                if error.kind() == io::ErrorKind::AlreadyExists {
                    Ok(())
                } else {
                    Err(error)
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
    use std::path::Path;

    use super::*;

    fn key_in(folder: &Path) -> [u8; KEY_BYTES] {
        PrivateFolder::open(folder, "tests")
            .unwrap()
            .load_or_create_key("key", "nothing else")
            .unwrap()
    }

    #[test]
    fn a_key_is_made_once_and_only_its_user_can_read_it() {
        let dir = tempfile::tempdir().unwrap();
        let first = key_in(dir.path());
        let metadata = fs::metadata(dir.path().join("key")).unwrap();
        assert_eq!((metadata.mode() & 0o777, metadata.len()), (0o600, 32));
        assert_eq!(key_in(dir.path()), first);
        assert_eq!(
            fs::read_dir(dir.path()).unwrap().count(),
            1,
            "nothing temporary is left"
        );
        assert_ne!(
            PrivateFolder::open(dir.path(), "tests")
                .unwrap()
                .load_or_create_key("other", "nothing else")
                .unwrap(),
            first
        );
    }

    #[test]
    fn exposed_key_is_replaced() {
        type Change = fn(&Path);
        let changes: [Change; 5] = [
            |key| fs::set_permissions(key, fs::Permissions::from_mode(0o640)).unwrap(),
            |key| fs::write(key, "short").unwrap(),
            |key| fs::write(key, [0; 33]).unwrap(),
            |key| fs::write(key, "").unwrap(),
            |key| {
                fs::rename(key, key.with_extension("elsewhere")).unwrap();
                symlink(key.with_extension("elsewhere"), key).unwrap();
            },
        ];
        for change in changes {
            let dir = tempfile::tempdir().unwrap();
            let first = key_in(dir.path());
            change(&dir.path().join("key"));
            assert_ne!(key_in(dir.path()), first);
            assert_eq!(
                fs::symlink_metadata(dir.path().join("key")).unwrap().mode(),
                0o100_600
            );
        }
    }

    #[test]
    fn a_key_is_replaced_on_request() {
        let dir = tempfile::tempdir().unwrap();
        let first = key_in(dir.path());
        let second = PrivateFolder::open(dir.path(), "tests")
            .unwrap()
            .replace_key("key")
            .unwrap();
        assert_ne!(second, first);
        assert_eq!(key_in(dir.path()), second);
        assert_eq!(
            fs::read_dir(dir.path()).unwrap().count(),
            1,
            "nothing temporary is left"
        );
    }

    #[test]
    fn servers_that_start_concurrently_share_one_key() {
        let dir = tempfile::tempdir().unwrap();
        let keys: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(|| key_in(dir.path()))).collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .collect()
        });
        assert!(keys.windows(2).all(|pair| pair[0] == pair[1]));
    }
}
