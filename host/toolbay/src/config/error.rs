//! Configuration that cannot be used.

use thiserror::Error;

/// Configuration that cannot be used: the program ends with exit code 64.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{0}")]
pub struct ConfigError(pub(super) String);

impl ConfigError {
    /// An error with this text: one line, with what would be right.
    pub fn new(text: String) -> Self {
        Self(text)
    }
}
