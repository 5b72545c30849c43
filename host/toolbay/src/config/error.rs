//! The error for an invalid configuration.

use thiserror::Error;

/// An invalid configuration. The text is one line with the position of the mistake and the expected
/// value. The program exits with code 64.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{0}")]
pub struct ConfigError(pub(super) String);

impl ConfigError {
    /// Creates an error with this text.
    pub fn new(text: String) -> Self {
        Self(text)
    }
}
