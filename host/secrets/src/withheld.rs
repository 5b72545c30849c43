//! Why a request is not sent for want of a secret.

use std::fmt;

/// Why a request cannot carry a secret, and is not sent. Each has the secret's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WithheldCredential {
    /// It has no value.
    NoValue(String),
    /// Each caller has its own, and this one is not authenticated.
    NoCaller(String),
    /// Each caller has its own, and this one has none.
    NotForCaller(String),
    /// The value cannot be in a header.
    Unusable(String),
    /// The request's URL has no room for it.
    TooLong(String),
}

/// The end of a sentence about a request, without a path of the server.
impl fmt::Display for WithheldCredential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoValue(name) => write!(f, "must carry the secret {name:?}, which has no value on this server"),
            Self::NoCaller(name) => {
                write!(f, "must carry the caller's own secret {name:?}, and the caller is not authenticated")
            }
            Self::NotForCaller(name) => {
                write!(f, "must carry the caller's own secret {name:?}, and this caller has none on this server")
            }
            Self::Unusable(name) => write!(f, "must carry the secret {name:?}, whose value cannot be in a header"),
            Self::TooLong(name) => write!(f, "must carry the secret {name:?}, for which its URL has no room"),
        }
    }
}
