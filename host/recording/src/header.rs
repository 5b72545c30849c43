//! The first line of a recording, and of what another server added to it.

use serde::{Deserialize, Serialize};

/// The version of the format. A file of a newer version is refused.
pub(crate) const VERSION: u64 = 1;

/// The first line of a recording, and of what another server added to it.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct RecordingHeader {
    /// The version of the format.
    pub version: u64,
    /// The version of Toolbay.
    pub toolbay: String,
    /// When the server began to record, as RFC 3339.
    pub started: String,
    /// Random: what is a digest in the recording says nothing to whoever has a list of likely values of another one.
    pub salt: String,
}
