//! Why a call cannot be run again.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Why a recorded call cannot be run again: something that it depended on is not in the recording.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum MissingInput {
    /// It used the files of a mounted folder.
    Files,
    /// It resolved a name or made a TCP connection.
    Connections,
    /// It got trailers of an HTTP response.
    Trailers,
    /// What it got is larger than `record.max_call`, or there was no room for it.
    TooLarge,
    /// What it got contains a secret in a form that cannot be redacted.
    Secret,
    /// It ended while an operation with state was under way.
    Unfinished,
    /// It ran until its deadline: where that is depends on the machine.
    Deadline,
    /// It ended with an error of the server.
    Internal,
}

impl fmt::Display for MissingInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Files => "it used files of a mounted folder, which a recording does not contain",
            Self::Connections => "it used the network directly (TCP or names), which a recording does not contain",
            Self::Trailers => "it got trailers of an HTTP response, which a recording does not contain",
            Self::TooLarge => "what it got was too large to be recorded (record.max_call)",
            Self::Secret => "what it got contains a secret that cannot be redacted, and was not recorded",
            Self::Unfinished => "it ended while it waited for what it keeps, and what came of that is not known",
            Self::Deadline => "it ran until its deadline, which depends on the machine",
            Self::Internal => "it ended with an error of the server",
        })
    }
}
