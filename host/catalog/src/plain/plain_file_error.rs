//! The error of a folder of plain files that cannot be loaded.

use std::io;

use crate::folder::load_error::LoadError;

/// The reason why a folder of plain files cannot be loaded.
#[derive(Debug)]
pub(crate) enum PlainFileError {
    /// The folder is invalid. Nothing in it can be offered until it changes.
    Refused(String),
    /// The folder cannot be read for a transient reason.
    Transient(LoadError),
}

impl PlainFileError {
    /// Returns the error of a transient failure to read `label`.
    pub(crate) fn transient(label: &str, error: &io::Error) -> Self {
        Self::Transient(LoadError::Transient(format!(
            "{label}: it cannot be read: {error}"
        )))
    }
}
