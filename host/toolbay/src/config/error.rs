//! An invalid configuration.

use thiserror::Error;

/// An invalid configuration. The text is one line that says where the mistake is and what was expected; the program
/// exits with code 64.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{0}")]
pub struct ConfigError(pub(super) String);

impl ConfigError {
    /// An error with this text.
    pub fn new(text: String) -> Self {
        Self(text)
    }
}
