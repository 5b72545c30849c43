//! Lines of a recording.

use serde::{Deserialize, Serialize};
use toolbay_model::JsonSize;

use crate::header::{FORMAT_VERSION, RecordingHeader};
use crate::recorded_call::RecordedCall;

/// Maximum length of a line, in bytes. Sufficient for the largest call that can be recorded, whose
/// bytes are written as text.
pub(crate) const MAX_LINE_BYTES: usize = 64 << 20;

/// Maximum memory that parsing a line may take, in bytes.
const MAX_PARSE_BYTES: u64 = 512 << 20;

/// Line of a recording.
#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum RecordingLine {
    /// Header, which a server writes when it starts to record.
    Recording(RecordingHeader),
    /// Recorded call.
    Call(Box<RecordedCall>),
    /// Calls that could not be recorded.
    Lost {
        /// Number of calls.
        calls: u64,
    },
}

/// Error parsing a line.
#[derive(Debug)]
pub(crate) enum LineError {
    /// The line is malformed or incomplete.
    Malformed(String),
    /// The line is a header of a newer version.
    UnsupportedVersion(u64),
}

/// Part of the header that is common to all versions.
#[derive(Deserialize)]
struct AnyHeader {
    recording: AnyVersion,
}

#[derive(Deserialize)]
struct AnyVersion {
    version: u64,
}

impl RecordingLine {
    /// Parses a line without its line end.
    pub(crate) fn parse(text: &[u8]) -> Result<Self, LineError> {
        let malformed = |why: &dyn std::fmt::Display| LineError::Malformed(why.to_string());
        let text = std::str::from_utf8(text).map_err(|_| malformed(&"it is not UTF-8"))?;
        if JsonSize::measure(text).memory > MAX_PARSE_BYTES {
            return Err(malformed(&"it has too many values"));
        }
        serde_json::from_str(text)
            .map_err(|error| match serde_json::from_str::<AnyHeader>(text) {
                Ok(AnyHeader {
                    recording: AnyVersion { version },
                }) if version > FORMAT_VERSION => LineError::UnsupportedVersion(version),
                _ => malformed(&error),
            })
            .and_then(|line| match line {
                Self::Recording(RecordingHeader { version, .. }) if version > FORMAT_VERSION => {
                    Err(LineError::UnsupportedVersion(version))
                }
                Self::Recording(RecordingHeader { version: 0, .. }) => {
                    Err(malformed(&"there is no version 0"))
                }
                line => Ok(line),
            })
    }

    /// Serializes the line, with its line end.
    pub(crate) fn to_bytes(&self) -> serde_json::Result<Vec<u8>> {
        let mut text = serde_json::to_vec(self)?;
        text.push(b'\n');
        Ok(text)
    }

    /// Returns whether the line is a header.
    pub(crate) fn is_header(&self) -> bool {
        matches!(self, Self::Recording(_))
    }
}
