//! What a server finds when it goes on with a log that another one left.

use serde::{Deserialize, Serialize};

/// How the end of a log differed from what was signed last. Nothing of it is set after a server that ended in order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct RecoveryReport {
    /// What stands between the last whole line and the line that says this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub torn: Option<TornBytes>,
    /// Lines that were signed and are no longer there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing: Option<u64>,
    /// Lines that were written and that the server had no time to sign.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unsigned: Option<u64>,
    /// What is wrong with the end in another way, as a clause.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wrong: Option<&'static str>,
}

/// Bytes that are not whole lines.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TornBytes {
    /// How many, without a line end after them.
    pub bytes: u64,
    /// Their SHA-256 in hexadecimal.
    pub sha256: String,
}
