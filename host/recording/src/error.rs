//! Error writing or reading a recording.

use thiserror::Error;

/// Error writing or reading a recording, as a message for people.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct RecordingError(pub(crate) String);
