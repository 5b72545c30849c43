//! Deserializers and serializers for the keys that mounts and temporary folders share.

use std::path::{Component, Path};

use bytesize::ByteSize;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use toolbay_model::setting::count;

/// Maximum number of entries that a grant can allow in a folder. Counting this many takes seconds.
const MAX_ENTRIES: usize = 1_000_000;

/// Parses a number of entries, 1 to 1,000,000.
pub(crate) fn entries<'de, D: Deserializer<'de>>(deserializer: D) -> Result<usize, D::Error> {
    count(deserializer, 1, MAX_ENTRIES)
}

/// Parses an absolute path without `..`.
pub(crate) fn guest_path<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let guest = String::deserialize(deserializer)?;
    let path = Path::new(&guest);
    let has_only_names = path
        .components()
        .all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
    if path.is_absolute() && has_only_names && !guest.contains('\0') {
        return Ok(guest);
    }
    Err(D::Error::custom(format_args!(
        "{guest:?} must be an absolute path without `..`, such as \"/data\""
    )))
}

/// Serializes a size as a number of bytes, for programs.
#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde requires this signature"
)]
pub(crate) fn bytes<S: Serializer>(size: &ByteSize, serializer: S) -> Result<S::Ok, S::Error> {
    size.as_u64().serialize(serializer)
}

/// Like [`bytes`], for an optional size.
#[expect(clippy::ref_option, reason = "serde requires this signature")]
pub(crate) fn optional_bytes<S: Serializer>(
    size: &Option<ByteSize>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    size.map(|size| size.as_u64()).serialize(serializer)
}
