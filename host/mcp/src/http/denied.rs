//! Why a request is not let in.

use std::fmt;

use sha2::{Digest as _, Sha256};

/// Why a request is not let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Denied {
    /// It has no token.
    Missing,
    /// It has one that is not valid: why.
    Invalid(&'static str),
    /// Its token is valid and has too few scopes.
    Scope,
}

impl fmt::Display for Denied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("a bearer token is required"),
            Self::Invalid(why) => write!(f, "the token was rejected: {why}"),
            Self::Scope => f.write_str("the token lacks a required scope"),
        }
    }
}

/// What is remembered of a token instead of it.
pub(super) fn hash(token: &str) -> [u8; 32] {
    Sha256::digest(token).into()
}
