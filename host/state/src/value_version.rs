//! Versions of values, for comparisons without the value in memory.

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// Version of a value: its digest, or the absence of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct ValueVersion(Option<[u8; 32]>);

impl ValueVersion {
    /// Returns the version of this value; `None` stands for a key that does not exist.
    pub fn from_value(value: Option<&[u8]>) -> Self {
        Self(value.map(|value| Sha256::digest(value).into()))
    }
}
