//! Why state cannot be used.

use std::fmt::{self, Display, Formatter};

/// Why state cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The grant does not allow it.
    Denied,
    /// There is no such bucket.
    NoSuchBucket,
    /// Something else, in the host's words, such as a quota that is reached.
    Other(String),
}

/// A sentence for the model.
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
