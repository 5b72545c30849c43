//! The files of the key: loads the key of a log, or creates it together with the heads of a log
//! without lines.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsFd as _;

use aws_lc_rs::rand;
use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags, openat, renameat, renameat_with, unlinkat};
use rustix::io::Errno;

use crate::error::AuditError;
use crate::folder::{LogFolder, OTHERS_ACCESS_MODE};
use crate::head;
use crate::key::{KEY_BYTES, LogKey};

/// Name of the file with the secret key: 32 bytes, the seed of RFC 8032.
const SECRET_KEY_FILE_NAME: &str = "key";

/// Name of the file with the public key in hexadecimal.
pub(crate) const PUBLIC_KEY_FILE_NAME: &str = "public-key";

impl LogKey {
    /// Returns whether the directory has a key.
    pub(crate) fn exists(folder: &LogFolder) -> bool {
        folder.contains(SECRET_KEY_FILE_NAME)
    }

    /// Loads the key from the directory. Creates a key, and the heads of a log without lines, if the
    /// directory has no log yet (`is_new`).
    ///
    /// # Errors
    ///
    /// Returns an error if a log exists without a key, or if other users could have read or changed
    /// the key.
    pub(crate) fn load_or_create(folder: &LogFolder, is_new: bool) -> Result<Self, AuditError> {
        let path = folder.path().join(SECRET_KEY_FILE_NAME);
        if is_new && !Self::exists(folder) {
            create_key_file(folder)
                .map_err(|error| AuditError::from_io("create", &path, &error))?;
        }
        let (file, mode) = folder.open_own(SECRET_KEY_FILE_NAME).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => AuditError(format!(
                "{} is missing, and without it the audit log cannot be continued; restore it, or move the files of the \
                 log to another folder to begin a new one",
                path.display()
            )),
            _ => AuditError::from_io("use", &path, &error),
        })?;
        if mode & OTHERS_ACCESS_MODE != 0 {
            return Err(AuditError(format!(
                "other users may have read {}: its mode is {:o}; to begin a new audit log, move the files of this one to \
                 another folder",
                path.display(),
                mode & 0o777
            )));
        }
        let mut seed = Vec::new();
        let read = file.take(KEY_BYTES as u64 + 1).read_to_end(&mut seed);
        read.map_err(|error| AuditError::from_io("read", &path, &error))?;
        let key = Self::from_seed(&seed).ok_or_else(|| {
            AuditError(format!("{} is not a key of an audit log", path.display()))
        })?;
        key.write_public_key(folder).map_err(|error| {
            AuditError::from_io("write", &folder.path().join(PUBLIC_KEY_FILE_NAME), &error)
        })?;
        Ok(key)
    }

    /// Writes the public key next to the secret key.
    fn write_public_key(&self, folder: &LogFolder) -> io::Result<()> {
        let mut file = folder.create(
            PUBLIC_KEY_FILE_NAME,
            OFlags::TRUNC,
            Mode::from_raw_mode(0o644),
        )?;
        file.write_all(format!("{}\n", self.public_key()).as_bytes())
    }
}

/// Creates a key file, after the heads that it signs. Writes it under a temporary name first, so
/// that readers never observe a partial key, and never replaces an existing key.
fn create_key_file(folder: &LogFolder) -> io::Result<()> {
    let mut random = [0; KEY_BYTES + 8];
    rand::fill(&mut random).map_err(|_| io::Error::other("the system provides no random bytes"))?;
    let (seed, name) = random.split_at(KEY_BYTES);
    let key = LogKey::from_seed(seed).ok_or_else(|| io::Error::other("no key can be created"))?;
    let temporary = format!(".key-{}", hex::encode(name));
    let handle = folder.handle().as_fd();
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut file = File::from(openat(handle, &temporary, flags, Mode::RUSR | Mode::WUSR)?);
    let result = file
        .write_all(seed)
        .and_then(|()| file.sync_all())
        .and_then(|()| head::write_empty_heads(folder, &key))
        .and_then(|()| {
            match renameat_with(
                handle,
                &temporary,
                handle,
                SECRET_KEY_FILE_NAME,
                RenameFlags::NOREPLACE,
            ) {
                // Some file systems do not support `NOREPLACE`. The directory lock excludes other
                // servers.
                Err(Errno::INVAL | Errno::NOSYS) => {
                    Ok(renameat(handle, &temporary, handle, SECRET_KEY_FILE_NAME)?)
                }
                done => Ok(done?),
            }
        });
    folder.sync();
    result.inspect_err(|_| unlinkat(handle, &temporary, AtFlags::empty()).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

    use toolbay_model::Digest;

    use super::*;
    use crate::claim::{SignedClaim, SignedHead};
    use crate::key::PublicKey;
    use crate::part::LogPart;

    #[test]
    fn a_key_is_made_once_and_only_its_user_can_read_it() {
        let dir = tempfile::tempdir().unwrap();
        let folder = LogFolder::open(dir.path()).unwrap();
        let key = LogKey::load_or_create(&folder, true).unwrap();
        let metadata = fs::metadata(dir.path().join(SECRET_KEY_FILE_NAME)).unwrap();
        assert_eq!((metadata.mode() & 0o777, metadata.len()), (0o600, 32));
        assert_eq!(
            LogKey::load_or_create(&folder, true).unwrap().public_key(),
            key.public_key()
        );
        let public =
            PublicKey::parse(&fs::read_to_string(dir.path().join(PUBLIC_KEY_FILE_NAME)).unwrap());
        assert_eq!(public, Some(key.public_key()));
        assert_eq!(
            fs::read_dir(dir.path()).unwrap().count(),
            4,
            "two keys and two heads; nothing temporary is left"
        );
    }

    #[test]
    fn signature_is_valid_for_one_claim() {
        let dir = tempfile::tempdir().unwrap();
        let key = LogKey::load_or_create(&LogFolder::open(dir.path()).unwrap(), true).unwrap();
        let one = Digest::new([1; 32]);
        let two = Digest::new([2; 32]);
        let head = SignedHead {
            seq: 1,
            hash: one,
            oldest: 1,
            ended: false,
        };
        let claims = [
            SignedClaim::Checkpoint(1, one),
            SignedClaim::Checkpoint(2, one),
            SignedClaim::Checkpoint(1, two),
            SignedClaim::Head(head),
            SignedClaim::Head(SignedHead {
                ended: true,
                ..head
            }),
            SignedClaim::Head(SignedHead { oldest: 2, ..head }),
        ];
        for (signed, claim) in claims.into_iter().enumerate() {
            let signature = key.sign(LogPart::Main, claim);
            for (other, claim) in claims.into_iter().enumerate() {
                assert_eq!(
                    key.public_key().verifies(&signature, LogPart::Main, claim),
                    signed == other
                );
            }
        }
        assert!(
            !key.public_key().verifies("", LogPart::Main, claims[4])
                && !key.public_key().verifies("zz", LogPart::Main, claims[0])
        );
    }

    #[test]
    fn log_with_a_missing_or_exposed_key_is_not_continued() {
        type Change = fn(&std::path::Path);
        let changes: [(Change, &str); 5] = [
            (
                |key| fs::remove_file(key).unwrap(),
                "is missing, and without it the audit log cannot be continued",
            ),
            (
                |key| fs::set_permissions(key, fs::Permissions::from_mode(0o640)).unwrap(),
                "its mode is 640",
            ),
            (
                |key| fs::write(key, "short").unwrap(),
                "is not a key of an audit log",
            ),
            (
                |key| fs::write(key, [7; 33]).unwrap(),
                "is not a key of an audit log",
            ),
            (
                |key| {
                    fs::rename(key, key.with_extension("elsewhere")).unwrap();
                    symlink(key.with_extension("elsewhere"), key).unwrap();
                },
                "cannot use",
            ),
        ];
        for (change, said) in changes {
            let dir = tempfile::tempdir().unwrap();
            let folder = LogFolder::open(dir.path()).unwrap();
            LogKey::load_or_create(&folder, true).unwrap();
            change(&dir.path().join(SECRET_KEY_FILE_NAME));
            let error = LogKey::load_or_create(&folder, false)
                .unwrap_err()
                .to_string();
            assert!(error.contains(said), "{error}");
        }
    }
}
