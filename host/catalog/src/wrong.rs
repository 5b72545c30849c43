//! Why a folder of plain files is not as it was found.

use std::io;

use crate::load_error::LoadError;

/// Why a folder of plain files is not as it was found.
#[derive(Debug)]
pub(crate) enum PlainFileError {
    /// Nothing in it can be offered, until somebody changes it.
    Refused(String),
    /// It cannot be read for a reason that may pass.
    Hindered(LoadError),
}

impl PlainFileError {
    /// `what` cannot be read for a reason that may pass.
    pub(crate) fn hindered(what: &str, error: &io::Error) -> Self {
        Self::Hindered(LoadError::Hindered(format!("{what}: it cannot be read: {error}")))
    }
}
