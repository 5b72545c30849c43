//! Random values that only one side may know, and what is kept of them.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};

/// What is kept of a secret: comparing it reveals nothing of the secret by the time that takes.
pub(crate) type SecretHash = [u8; 32];

/// Random bytes of a secret.
const BYTES: usize = 32;

/// A new secret, in characters that can stand in URLs, cookies and forms; `None` if the system has no random bytes.
pub(crate) fn secret() -> Option<String> {
    let mut bytes = [0; BYTES];
    getrandom::fill(&mut bytes).ok()?;
    Some(BASE64_URL_SAFE_NO_PAD.encode(bytes))
}

/// What is kept of a secret.
pub(crate) fn hash(secret: &str) -> SecretHash {
    Sha256::digest(secret).into()
}
