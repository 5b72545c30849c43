//! Reasons that a call cannot be replayed.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Reason that a recorded call cannot be replayed: an input that the recording does not contain.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum MissingInput {
    /// The call used files of a mounted directory.
    Files,
    /// The call resolved a name or opened a TCP connection.
    Connections,
    /// The call received trailers of an HTTP response.
    Trailers,
    /// The input is larger than `record.call_size`, or the memory for recordings was exhausted.
    TooLarge,
    /// The input contains a secret in a form that cannot be redacted.
    Secret,
    /// The call ended during a state operation.
    Unfinished,
    /// The call ran until its deadline, which depends on the machine.
    Deadline,
    /// The call ended with an internal error of the server.
    Internal,
}

impl fmt::Display for MissingInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Files => "it used files of a mounted folder, which a recording does not contain",
            Self::Connections => {
                "it used the network directly (TCP or names), which a recording does not contain"
            }
            Self::Trailers => {
                "it got trailers of an HTTP response, which a recording does not contain"
            }
            Self::TooLarge => "what it got was too large to be recorded (record.call_size)",
            Self::Secret => {
                "what it got contains a secret that cannot be redacted, and was not recorded"
            }
            Self::Unfinished => {
                "it ended during an operation on its state, whose result is not known"
            }
            Self::Deadline => "it ran until its deadline, which depends on the machine",
            Self::Internal => "it ended with an error of the server",
        })
    }
}
