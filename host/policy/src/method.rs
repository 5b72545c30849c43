//! The methods of requests.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The methods of RFC 9110 and RFC 5789 that a grant can list. Methods are case-sensitive: `get` is
/// a different method.
const STANDARD_METHODS: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"];
/// The methods that no request can have, as in the [Fetch
/// standard](https://fetch.spec.whatwg.org/#forbidden-method). CONNECT creates a tunnel, in which
/// nothing is checked. The others return the request, including the credentials that the host adds.
const FORBIDDEN_METHODS: [&str; 3] = ["CONNECT", "TRACE", "TRACK"];

/// A method that requests can have.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct HttpMethod(String);

/// The reason why no request can have a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MethodError {
    /// The method is not a token.
    Malformed,
    /// The method is this forbidden one, in upper or lower case.
    Forbidden(&'static str),
}

impl HttpMethod {
    /// Parses the method of a request: a token (RFC 9110, section 5.6.2) that is not forbidden.
    pub(crate) fn parse_request_method(text: &str) -> Result<Self, MethodError> {
        let is_token_byte =
            |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        if text.is_empty() || !text.bytes().all(is_token_byte) {
            return Err(MethodError::Malformed);
        }
        match FORBIDDEN_METHODS
            .into_iter()
            .find(|forbidden| text.eq_ignore_ascii_case(forbidden))
        {
            Some(forbidden) => Err(MethodError::Forbidden(forbidden)),
            None => Ok(Self(text.to_owned())),
        }
    }

    /// Parses an entry of `methods`.
    ///
    /// # Errors
    ///
    /// Returns a message with the entry in quotes, the mistake, and a correct form.
    pub fn parse(text: &str) -> Result<Self, String> {
        let method = Self::parse_request_method(text).map_err(|error| match error {
            MethodError::Malformed if text.contains('*') || text.is_empty() => {
                format!("{text:?} is not a method; to allow every method, leave out `methods`")
            }
            MethodError::Malformed => format!("{text:?} is not a method, such as \"GET\""),
            MethodError::Forbidden(method) => {
                format!("{text:?} cannot be allowed: no tool may use {method}")
            }
        })?;
        // `*` is a valid token, but an operator who writes it means a pattern.
        if text.contains('*') {
            return Err(format!(
                "{text:?} is not a method; to allow every method, leave out `methods`"
            ));
        }
        match STANDARD_METHODS
            .into_iter()
            .find(|standard| text.eq_ignore_ascii_case(standard))
        {
            Some(standard) if standard != text => Err(format!(
                "{text:?} is not {standard:?}: methods are case-sensitive; write {standard:?}"
            )),
            _ => Ok(method),
        }
    }

    /// Returns the method as it is sent.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for HttpMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for HttpMethod {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::parse(&text)
    }
}

impl From<HttpMethod> for String {
    fn from(method: HttpMethod) -> Self {
        method.0
    }
}
