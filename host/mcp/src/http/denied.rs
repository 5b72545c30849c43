//! Why a request is rejected without authorization.

use std::fmt;

use sha2::{Digest as _, Sha256};

/// How much of a claim is repeated, in characters.
const MAX_QUOTED_CHARS: usize = 200;

/// Why a request is rejected without authorization.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum AuthDenial {
    /// It has no token.
    Missing,
    /// Its token is invalid; the text says why.
    Invalid(&'static str),
    /// A claim of its token is another one than the server expects: who compares them sees a slash at the end.
    Differs(TokenClaim, String),
    /// Its token is valid but lacks a required scope.
    Scope,
    /// Its token is valid, but what it asks for needs these scopes as well.
    StepUp(Vec<String>),
    /// Its token is valid but is not the one of an operator.
    Admin,
}

/// A claim that has to be a certain text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TokenClaim {
    Issuer,
    Audience,
}

impl TokenClaim {
    /// The rejection of a token in which the claim is `found`, and one of `expected` is accepted.
    pub(super) fn mismatch<'a>(self, found: &str, expected: impl IntoIterator<Item = &'a str>) -> AuthDenial {
        let expected: Vec<String> = expected.into_iter().map(header_safe).collect();
        AuthDenial::Differs(self, format!("{}, and this server accepts {}", header_safe(found), expected.join(" and ")))
    }
}

/// A text as the value of a parameter in a header can have it.
fn header_safe(text: &str) -> String {
    let plain = |letter: &char| matches!(letter, ' '..='~') && !matches!(letter, '"' | '\\');
    text.chars().filter(plain).take(MAX_QUOTED_CHARS).collect()
}

impl fmt::Display for AuthDenial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("a bearer token is required"),
            Self::Invalid(why) => write!(f, "the token was rejected: {why}"),
            Self::Differs(TokenClaim::Issuer, how) => write!(f, "the token was rejected: its issuer (iss) is {how}"),
            Self::Differs(TokenClaim::Audience, how) => {
                write!(f, "the token was rejected: its audience (aud) is {how}")
            }
            Self::Scope => f.write_str("the token lacks a required scope"),
            Self::StepUp(scopes) => write!(f, "this needs a token with the scopes {}", scopes.join(" ")),
            Self::Admin => f.write_str("this needs a token of http.tokens with admin = true"),
        }
    }
}

/// The hash of a token, which is stored instead of the token.
pub(super) fn token_hash(token: &str) -> [u8; 32] {
    Sha256::digest(token).into()
}
