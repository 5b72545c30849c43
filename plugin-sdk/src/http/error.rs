//! Errors of HTTP requests.

use std::fmt::{self, Display, Formatter};

use wasip2::http::types::ErrorCode;

/// The reason why a request has no response, or a response has no body.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The request cannot be sent, because the URL, the method or a header is invalid. The text
    /// describes the mistake.
    Invalid(String),
    /// The grant does not allow the request.
    Denied,
    /// The server's name has no address, or no address that the grant allows.
    NoAddress,
    /// The server did not respond in time.
    Timeout,
    /// The server refused the connection, or ended it before the response was complete.
    Connection,
    /// The server's certificate is not trusted, or encryption failed.
    Tls,
    /// The server responded with this status, which is 400 or above.
    Status(u16),
    /// Another error, with the host's message.
    Other(String),
}

impl Error {
    /// Converts an error code of the host.
    pub(super) fn from_code(code: &ErrorCode) -> Self {
        match code {
            ErrorCode::HttpRequestDenied => Self::Denied,
            ErrorCode::DnsTimeout
            | ErrorCode::ConnectionTimeout
            | ErrorCode::ConnectionReadTimeout
            | ErrorCode::ConnectionWriteTimeout
            | ErrorCode::HttpResponseTimeout => Self::Timeout,
            ErrorCode::DnsError(_)
            | ErrorCode::DestinationNotFound
            | ErrorCode::DestinationUnavailable
            | ErrorCode::DestinationIpProhibited
            | ErrorCode::DestinationIpUnroutable => Self::NoAddress,
            ErrorCode::ConnectionRefused
            | ErrorCode::ConnectionTerminated
            | ErrorCode::HttpResponseIncomplete => Self::Connection,
            ErrorCode::TlsProtocolError
            | ErrorCode::TlsCertificateError
            | ErrorCode::TlsAlertReceived(_) => Self::Tls,
            ErrorCode::InternalError(Some(words)) => Self::Other(words.clone()),
            code => Self::Other(code_in_words(code)),
        }
    }
}

/// Returns the name of an error code in words: `ConnectionLimitReached` becomes
/// `connection limit reached`.
fn code_in_words(code: &ErrorCode) -> String {
    let name = format!("{code:?}");
    let name = name.rsplit("::").next().unwrap_or_default();
    let mut words = String::new();
    for c in name.chars().take_while(char::is_ascii_alphabetic) {
        if c.is_ascii_uppercase() && !words.is_empty() {
            words.push(' ');
        }
        words.push(c.to_ascii_lowercase());
    }
    words
}

/// Writes a sentence for the model.
impl Display for Error {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(what) => write!(f, "The request cannot be sent: {what}."),
            Self::Denied => f.write_str("The request is denied."),
            Self::NoAddress => f.write_str("The server cannot be found."),
            Self::Timeout => f.write_str("The server did not answer in time."),
            Self::Connection => f.write_str("The connection to the server failed."),
            Self::Tls => f.write_str("The connection to the server is not secure."),
            Self::Status(status) => write!(f, "The server answered with status {status}."),
            Self::Other(what) => write!(f, "The request failed: {what}."),
        }
    }
}

impl std::error::Error for Error {}
