//! What a value is compared by, so that it need not be held.

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// What tells one value of a key from another: the digest of the value, or that there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct ValueVersion(Option<[u8; 32]>);

impl ValueVersion {
    /// The version of this value; `None` if the key does not exist.
    pub fn of(value: Option<&[u8]>) -> Self {
        Self(value.map(|value| Sha256::digest(value).into()))
    }
}
