//! Random secrets and their hashes.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};

/// SHA-256 of a secret. Comparing hashes leaks no timing information about the secret.
pub(crate) type SecretHash = [u8; 32];

/// Number of random bytes in a secret.
const SECRET_BYTES: usize = 32;

/// Generates a secret that is safe in URLs, cookies and forms. Returns `None` if the system
/// provides no random bytes.
pub(crate) fn generate_secret() -> Option<String> {
    let mut bytes = [0; SECRET_BYTES];
    getrandom::fill(&mut bytes).ok()?;
    Some(BASE64_URL_SAFE_NO_PAD.encode(bytes))
}

/// Returns the hash of a secret.
pub(crate) fn hash_secret(secret: &str) -> SecretHash {
    Sha256::digest(secret).into()
}
