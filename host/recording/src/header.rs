//! Header of a recording.

use serde::{Deserialize, Serialize};

/// Version of the format. Files of a newer version are rejected.
pub(crate) const FORMAT_VERSION: u64 = 1;

/// Header line. Each server that records to a file writes one first.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct RecordingHeader {
    /// Version of the format.
    pub version: u64,
    /// Version of Toolbay.
    pub toolbay: String,
    /// Time at which the server started to record, as RFC 3339.
    pub started: String,
    /// Random salt of the digests. It prevents the use of precomputed digests of likely values.
    pub salt: String,
}
