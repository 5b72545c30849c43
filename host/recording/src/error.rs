//! Why a recording cannot be written or read.

use thiserror::Error;

/// Why a recording cannot be written or read, in words for people.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct RecordingError(pub(crate) String);
