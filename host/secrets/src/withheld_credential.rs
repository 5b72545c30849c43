//! Reasons that a request is not sent because a secret is missing.

use std::fmt;

/// Reason that a request cannot carry a secret and is not sent. Each variant contains the secret's
/// name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WithheldCredential {
    /// The secret has no value.
    NoValue(String),
    /// Each caller has a separate secret, and this caller is not authenticated.
    NoCaller(String),
    /// Each caller has a separate secret, and this caller has none.
    NotForCaller(String),
    /// The value is not valid in a header.
    Unusable(String),
    /// The request's URL would be too long.
    TooLong(String),
}

/// Writes the end of a sentence about a request, without paths on the server.
impl fmt::Display for WithheldCredential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoValue(name) => write!(
                f,
                "must carry the secret {name:?}, which has no value on this server"
            ),
            Self::NoCaller(name) => {
                write!(
                    f,
                    "must carry the caller's own secret {name:?}, and the caller is not authenticated"
                )
            }
            Self::NotForCaller(name) => {
                write!(
                    f,
                    "must carry the caller's own secret {name:?}, and this caller has none on this server"
                )
            }
            Self::Unusable(name) => write!(
                f,
                "must carry the secret {name:?}, whose value cannot be in a header"
            ),
            Self::TooLong(name) => write!(
                f,
                "must carry the secret {name:?}, but its URL would be too long"
            ),
        }
    }
}
