//! Why a request is rejected without authorization.

use std::fmt;

use sha2::{Digest as _, Sha256};

/// Why a request is rejected without authorization.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Denied {
    /// It has no token.
    Missing,
    /// Its token is invalid; the text says why.
    Invalid(&'static str),
    /// Its token is valid but lacks a required scope.
    Scope,
    /// Its token is valid but is not the one of an operator.
    Admin,
}

impl fmt::Display for Denied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("a bearer token is required"),
            Self::Invalid(why) => write!(f, "the token was rejected: {why}"),
            Self::Scope => f.write_str("the token lacks a required scope"),
            Self::Admin => f.write_str("this needs a token of http.tokens with admin = true"),
        }
    }
}

/// The hash of a token, which is stored instead of the token.
pub(super) fn hash(token: &str) -> [u8; 32] {
    Sha256::digest(token).into()
}
