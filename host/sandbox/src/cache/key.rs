//! The key of the compile cache. Entries have a message authentication code that is computed with
//! this key. Code that was not stored by a Toolbay of this user, or that was stored for another
//! plugin, is never run.

use std::fs::File;
use std::io::{self, Read as _, Seek as _};

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::hmac;
use toolbay_model::Digest;
use toolbay_private::PrivateFolder;

/// Name of the file with the key.
pub(super) const KEY_FILE_NAME: &str = "key";

/// Size of the buffer for reading code, in bytes.
const READ_BUFFER_BYTES: usize = 64 << 10;

/// Domain separator for entries. No other use of the key can produce the same authentication code.
const ENTRY_DOMAIN: &[u8] = b"toolbay compile cache 2";

/// Domain separator for compiled code. No domain separator is a prefix of another one.
const CODE_DOMAIN: &[u8] = b"toolbay compiled code 2";

/// Domain separator for notes about a plugin folder.
const FOLDER_DOMAIN: &[u8] = b"toolbay folder notes 1";

/// Domain separator for refusals of components.
const REFUSAL_DOMAIN: &[u8] = b"toolbay refusal 1";

/// The key of one cache.
pub(super) struct CacheMacKey(hmac::Key);

/// The signed content of an entry.
#[derive(Clone, Copy)]
pub(super) struct EntryClaim<'a> {
    /// The build identifier.
    pub(super) build_id: u64,
    /// The digest of the component.
    pub(super) digest: Digest,
    /// The notes about the component.
    pub(super) notes: &'a [u8],
    /// The authentication code of its compiled code.
    pub(super) code: &'a [u8],
}

impl CacheMacKey {
    /// Reads the key in the directory. Creates a new key if it is missing or if other users could
    /// have read it. The existing entries then become invalid.
    ///
    /// # Errors
    ///
    /// The directory cannot be read or written.
    pub(super) fn load_or_create(folder: &PrivateFolder) -> io::Result<Self> {
        Ok(Self(hmac::Key::new(
            hmac::HMAC_SHA256,
            &folder.load_or_create_key(KEY_FILE_NAME, "plugins are compiled again")?,
        )))
    }

    /// Returns the authentication code of an entry, over all its content.
    pub(super) fn sign_entry(&self, claim: EntryClaim<'_>) -> Vec<u8> {
        self.sign_parts(
            &[
                ENTRY_DOMAIN,
                &claim.build_id.to_le_bytes(),
                claim.digest.bytes(),
            ],
            [claim.notes, claim.code],
        )
    }

    /// Returns the authentication code of compiled code, over the whole file.
    pub(super) fn sign_code(&self, code: &File) -> io::Result<Vec<u8>> {
        let mut signing = hmac::Context::with_key(&self.0);
        signing.update(CODE_DOMAIN);
        let mut code = code;
        code.rewind()?;
        let mut buffer = vec![0; READ_BUFFER_BYTES];
        loop {
            match code.read(&mut buffer) {
                Ok(0) => return Ok(signing.sign().as_ref().to_vec()),
                Ok(length) => signing.update(buffer.get(..length).unwrap_or_default()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Returns the authentication code of notes about a plugin folder.
    pub(super) fn sign_folder(&self, build_id: u64, folder: &[u8], notes: &[u8]) -> Vec<u8> {
        self.sign_parts(&[FOLDER_DOMAIN, &build_id.to_le_bytes()], [folder, notes])
    }

    /// Returns the authentication code of notes about the refusal of a component.
    pub(super) fn sign_refusal(&self, build_id: u64, digest: Digest, notes: &[u8]) -> Vec<u8> {
        self.sign_parts(
            &[REFUSAL_DOMAIN, &build_id.to_le_bytes(), digest.bytes()],
            [notes, &[]],
        )
    }

    /// Returns the authentication code of parts with a fixed length, followed by two parts of any
    /// length, each preceded by its length.
    fn sign_parts(&self, fixed_parts: &[&[u8]], variable_parts: [&[u8]; 2]) -> Vec<u8> {
        let mut signing = hmac::Context::with_key(&self.0);
        for part in fixed_parts {
            signing.update(part);
        }
        for part in variable_parts {
            signing.update(&(part.len() as u64).to_le_bytes());
            signing.update(part);
        }
        signing.sign().as_ref().to_vec()
    }

    /// Returns whether `mac` is the authentication code of notes about a plugin folder.
    pub(super) fn verify_folder(
        &self,
        mac: &[u8],
        build_id: u64,
        folder: &[u8],
        notes: &[u8],
    ) -> bool {
        verify_slices_are_equal(&self.sign_folder(build_id, folder, notes), mac).is_ok()
    }

    /// Returns whether `mac` is the authentication code of notes about the refusal of a component.
    pub(super) fn verify_refusal(
        &self,
        mac: &[u8],
        build_id: u64,
        digest: Digest,
        notes: &[u8],
    ) -> bool {
        verify_slices_are_equal(&self.sign_refusal(build_id, digest, notes), mac).is_ok()
    }

    /// Returns whether `mac` is the authentication code of an entry.
    pub(super) fn verify_entry(&self, mac: &[u8], claim: EntryClaim<'_>) -> bool {
        verify_slices_are_equal(&self.sign_entry(claim), mac).is_ok()
    }

    /// Returns whether `mac` is the authentication code of compiled code.
    pub(super) fn verify_code(&self, mac: &[u8], code: &File) -> io::Result<bool> {
        Ok(verify_slices_are_equal(&self.sign_code(code)?, mac).is_ok())
    }
}

impl std::fmt::Debug for CacheMacKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Key(…)")
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write as _;
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

    use super::*;

    fn code(bytes: &[u8]) -> File {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        file
    }

    fn claim<'a>(notes: &'a [u8], code: &'a [u8]) -> EntryClaim<'a> {
        EntryClaim {
            build_id: 7,
            digest: Digest::new([1; 32]),
            notes,
            code,
        }
    }

    #[test]
    fn the_key_is_created_once_and_only_its_user_can_read_it() {
        let dir = tempfile::tempdir().unwrap();
        let folder = PrivateFolder::open(dir.path(), "tests").unwrap();
        let first = CacheMacKey::load_or_create(&folder).unwrap();
        let metadata = fs::metadata(dir.path().join(KEY_FILE_NAME)).unwrap();
        assert_eq!((metadata.mode() & 0o777, metadata.len()), (0o600, 32));
        let mac = first.sign_entry(claim(b"notes", b"code"));
        assert!(
            CacheMacKey::load_or_create(&folder)
                .unwrap()
                .verify_entry(&mac, claim(b"notes", b"code"))
        );
        assert_eq!(
            fs::read_dir(dir.path()).unwrap().count(),
            1,
            "nothing temporary is left"
        );
    }

    #[test]
    fn every_field_of_an_entry_is_signed() {
        let dir = tempfile::tempdir().unwrap();
        let key = CacheMacKey::load_or_create(&PrivateFolder::open(dir.path(), "tests").unwrap())
            .unwrap();
        let mac = key.sign_entry(claim(b"notes", b"code"));
        let signed = |claim: EntryClaim<'_>| key.verify_entry(&mac, claim);
        assert!(signed(claim(b"notes", b"code")));
        assert!(!signed(EntryClaim {
            build_id: 8,
            ..claim(b"notes", b"code")
        }));
        assert!(!signed(EntryClaim {
            digest: Digest::new([2; 32]),
            ..claim(b"notes", b"code")
        }));
        assert!(!signed(claim(b"note", b"code")) && !signed(claim(b"", b"code")));
        assert!(!signed(claim(b"notes", b"codes")) && !signed(claim(b"notes", b"")));
        // The boundary between notes and code is signed too.
        assert!(!signed(claim(b"note", b"scode")));
        assert!(!key.verify_entry(&mac[..31], claim(b"notes", b"code")));
    }

    #[test]
    fn all_of_the_code_is_signed_and_nothing_else_has_its_authentication_code() {
        let dir = tempfile::tempdir().unwrap();
        let key = CacheMacKey::load_or_create(&PrivateFolder::open(dir.path(), "tests").unwrap())
            .unwrap();
        let mut long = vec![7; 3 * READ_BUFFER_BYTES + 5];
        let mac = key.sign_code(&code(&long)).unwrap();
        assert!(key.verify_code(&mac, &code(&long)).unwrap());
        assert!(!key.verify_code(&mac, &code(&long[1..])).unwrap());
        *long.last_mut().unwrap() = 8;
        assert!(!key.verify_code(&mac, &code(&long)).unwrap());
        // The signed content of an entry, presented as code.
        let entry = claim(b"", b"");
        let mac = key.sign_entry(claim(b"", b""));
        let bytes = [
            &entry.build_id.to_le_bytes()[..],
            entry.digest.bytes(),
            &[0; 16],
        ]
        .concat();
        assert!(!key.verify_code(&mac, &code(&bytes)).unwrap());
    }

    #[test]
    fn a_key_that_others_may_know_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let folder = PrivateFolder::open(dir.path(), "tests").unwrap();
        let key = dir.path().join(KEY_FILE_NAME);
        let mac = CacheMacKey::load_or_create(&folder)
            .unwrap()
            .sign_entry(claim(b"", b""));
        fs::set_permissions(&key, fs::Permissions::from_mode(0o640)).unwrap();
        assert!(
            !CacheMacKey::load_or_create(&folder)
                .unwrap()
                .verify_entry(&mac, claim(b"", b""))
        );
        assert_eq!(fs::symlink_metadata(&key).unwrap().mode(), 0o100_600);
    }
}
