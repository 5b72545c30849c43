//! Why there is no audit log.

use std::io;
use std::path::Path;

use thiserror::Error;

/// Why the audit log cannot be written or read. The text is one line.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{0}")]
pub struct AuditError(pub(crate) String);

impl AuditError {
    /// Something could not be done with a file.
    pub(crate) fn file(verb: &str, path: &Path, error: &io::Error) -> Self {
        Self(format!("cannot {verb} {}: {error}", path.display()))
    }
}
