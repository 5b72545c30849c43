//! The temporary folder of a call.

use bytesize::ByteSize;
use serde::{Deserialize, Serialize};
use toolbay_model::setting::positive;

use crate::folder_settings::{bytes, entries, guest_path};

/// The temporary folder of each call (`[permissions.scratch]`). It is empty when the call starts,
/// and deleted when it ends.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct ScratchPermission {
    /// Absolute path of the folder in the guest, without `..`. Default: `/tmp`.
    #[serde(deserialize_with = "guest_path")]
    pub guest: String,
    /// Maximum total length of all files in the folder, in bytes, above 0. Default: 64 MiB.
    #[serde(deserialize_with = "positive", serialize_with = "bytes")]
    pub size: ByteSize,
    /// Maximum number of files, folders and links in the folder, at all depths, 1 to 1,000,000.
    /// Default: 1,000.
    #[serde(deserialize_with = "entries")]
    pub entries: usize,
}

impl Default for ScratchPermission {
    fn default() -> Self {
        Self {
            guest: "/tmp".to_owned(),
            size: ByteSize::mib(64),
            entries: 1000,
        }
    }
}
