//! Files of a certificate and its key.

use std::path::PathBuf;

use rustix::fs::Stat;
use rustix::process::geteuid;
use zeroize::Zeroizing;

use crate::regular_file::{read_checked, read_regular_file};

/// Maximum size of a file, in bytes. A certificate chain typically has a few thousand.
const MAX_FILE_BYTES: usize = 256 << 10;

/// Paths of a certificate and its key, both in PEM format. Symbolic links are followed, because
/// programs that renew certificates use them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateFiles {
    /// Certificate of the server, followed by its intermediate certificates.
    pub certificate: PathBuf,
    /// Private key. Only the server's user may have access; a file that root owns may be readable
    /// for its group.
    pub key: PathBuf,
}

/// Content of the files.
#[derive(PartialEq, Eq)]
pub(crate) struct CertificateContents {
    pub(crate) certificate: Vec<u8>,
    pub(crate) key: Zeroizing<Vec<u8>>,
}

impl CertificateFiles {
    /// Reads both files. Blocks.
    ///
    /// # Errors
    ///
    /// Returns an error if a file cannot be read, or if other users have access to the key.
    pub(crate) fn read(&self) -> Result<CertificateContents, String> {
        let certificate = read_regular_file(&self.certificate, MAX_FILE_BYTES)?;
        let key = read_checked(&self.key, MAX_FILE_BYTES, check_key_access)?;
        Ok(CertificateContents {
            certificate: certificate.to_vec(),
            key,
        })
    }
}

/// Checks that no other user has access to the key.
fn check_key_access(stat: &Stat) -> Result<(), String> {
    check_owner_and_mode(stat.st_uid, stat.st_mode & 0o7777, geteuid().as_raw())
}

fn check_owner_and_mode(owner: u32, mode: u32, user: u32) -> Result<(), String> {
    if owner != user && owner != 0 {
        return Err("belongs to another user than the server's; change its owner".to_owned());
    }
    // Debian makes keys readable for a group of programs.
    let fine = if owner == 0 && user != 0 {
        0o740
    } else {
        0o700
    };
    if mode & !fine & 0o777 != 0 {
        return Err(format!(
            "is open to other users (mode {mode:04o}); make it 0600"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_is_accessible_only_to_its_user_or_a_group_of_root() {
        for (owner, mode, user) in [
            (7, 0o600, 7),
            (7, 0o400, 7),
            (0, 0o600, 0),
            (0, 0o400, 7),
            (0, 0o640, 7),
        ] {
            assert_eq!(
                check_owner_and_mode(owner, mode, user),
                Ok(()),
                "{owner} {mode:o} {user}"
            );
        }
        for (owner, mode, user) in [
            (7, 0o640, 7),
            (7, 0o604, 7),
            (0, 0o644, 7),
            (0, 0o660, 7),
            (0, 0o640, 0),
            (7, 0o620, 7),
        ] {
            let why = check_owner_and_mode(owner, mode, user).unwrap_err();
            assert_eq!(
                why,
                format!("is open to other users (mode {mode:04o}); make it 0600")
            );
        }
        assert!(
            check_owner_and_mode(8, 0o600, 7)
                .unwrap_err()
                .starts_with("belongs to another user")
        );
    }
}
