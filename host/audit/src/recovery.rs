//! The state of a log that a server continues.

use serde::{Deserialize, Serialize};

/// Differences between the end of a log and the last signature. Empty if the previous server
/// stopped cleanly.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct RecoveryReport {
    /// Bytes between the last whole line and the line with this report.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub torn: Option<TornBytes>,
    /// Number of signed lines that are missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing: Option<u64>,
    /// Number of lines that were written but not signed before the server was killed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unsigned: Option<u64>,
    /// Another defect of the end, as a clause.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wrong: Option<&'static str>,
}

impl RecoveryReport {
    /// Returns a clause about what is missing or wrong; `None` if the differences can result from a
    /// server that was killed.
    pub(crate) fn describe_change(&self) -> Option<String> {
        let missing = self.missing.map(|count| match count {
            1 => "1 signed line is missing".to_owned(),
            count => format!("{count} signed lines are missing"),
        });
        missing.or(self.wrong.map(str::to_owned))
    }
}

/// Bytes that are not a whole line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TornBytes {
    /// Number of bytes, without the line end after them.
    pub bytes: u64,
    /// SHA-256 of the bytes, in hexadecimal.
    pub sha256: String,
}
