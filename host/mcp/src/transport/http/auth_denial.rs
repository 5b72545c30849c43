//! The reason why a request is rejected as unauthorized.

use std::fmt;

use sha2::{Digest as _, Sha256};

/// Maximum length of a quoted claim, in characters.
const MAX_QUOTED_CHARS: usize = 200;

/// The reason why a request is rejected as unauthorized.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum AuthDenial {
    /// It has no token.
    Missing,
    /// Its token is invalid. The text states the reason.
    Invalid(&'static str),
    /// A claim of its token differs from the expected value. The message quotes both, so that a
    /// difference such as a trailing slash is visible.
    Differs(TokenClaim, String),
    /// Its token is valid but lacks a required scope.
    Scope,
    /// Its token is valid, but the requested tool also requires these scopes.
    StepUp(Vec<String>),
    /// Its token is valid but is not an operator's token.
    Admin,
}

/// A claim with a required value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TokenClaim {
    Issuer,
    Audience,
}

impl TokenClaim {
    /// Returns the rejection of a token whose claim is `found` instead of one of `expected`.
    pub(super) fn mismatch<'a>(
        self,
        found: &str,
        expected: impl IntoIterator<Item = &'a str>,
    ) -> AuthDenial {
        let expected: Vec<String> = expected.into_iter().map(header_safe).collect();
        AuthDenial::Differs(
            self,
            format!(
                "{}, and this server accepts {}",
                header_safe(found),
                expected.join(" and ")
            ),
        )
    }
}

impl AuthDenial {
    /// Returns the reason, without any text of the client. Rejections are counted by reason.
    pub(super) const fn reason(&self) -> &'static str {
        match self {
            Self::Missing => "a bearer token is required",
            Self::Invalid(why) => why,
            Self::Differs(TokenClaim::Issuer, _) => "another issuer",
            Self::Differs(TokenClaim::Audience, _) => "another audience",
            Self::Scope | Self::StepUp(_) => "the token lacks a required scope",
            Self::Admin => "no token with admin = true",
        }
    }
}

/// Returns the characters of a text that are valid in a quoted header parameter.
fn header_safe(text: &str) -> String {
    let plain = |letter: &char| matches!(letter, ' '..='~') && !matches!(letter, '"' | '\\');
    text.chars().filter(plain).take(MAX_QUOTED_CHARS).collect()
}

impl fmt::Display for AuthDenial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("a bearer token is required"),
            Self::Invalid(why) => write!(f, "the token was rejected: {why}"),
            Self::Differs(TokenClaim::Issuer, how) => {
                write!(f, "the token was rejected: its issuer (iss) is {how}")
            }
            Self::Differs(TokenClaim::Audience, how) => {
                write!(f, "the token was rejected: its audience (aud) is {how}")
            }
            Self::Scope => f.write_str("the token lacks a required scope"),
            Self::StepUp(scopes) => {
                write!(f, "this needs a token with the scopes {}", scopes.join(" "))
            }
            Self::Admin => f.write_str("this needs a token of http.tokens with admin = true"),
        }
    }
}

/// Returns the hash of a token. Only the hash is stored.
pub(super) fn token_hash(token: &str) -> [u8; 32] {
    Sha256::digest(token).into()
}
