//! Errors of opening, reading and writing the log.

use std::io;
use std::path::Path;

use thiserror::Error;

/// The reason that the audit log cannot be written or read. The text is one line.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{0}")]
pub struct AuditError(pub(crate) String);

impl AuditError {
    /// Creates an error for a failed operation on a file.
    pub(crate) fn from_io(verb: &str, path: &Path, error: &io::Error) -> Self {
        Self(format!("cannot {verb} {}: {error}", path.display()))
    }
}
