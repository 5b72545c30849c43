//! Errors of the key-value store.

use std::fmt::{self, Display, Formatter};

/// The reason why the key-value store cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The grant does not allow state.
    Denied,
    /// The bucket does not exist.
    NoSuchBucket,
    /// Another error, with the host's message, such as an exhausted quota.
    Other(String),
}

/// Writes a sentence for the model.
impl Display for Error {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Denied => f.write_str("Keeping state is denied."),
            Self::NoSuchBucket => f.write_str("There is no such bucket."),
            Self::Other(what) => write!(f, "The state cannot be used: {what}."),
        }
    }
}

impl std::error::Error for Error {}
