//! Recorded outcome of HTTP requests.

use serde::{Deserialize, Serialize};

use crate::binary_text::BinaryText;

/// Outcome of an HTTP request, as the guest observed it.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum HttpAnswer {
    /// Response, up to the point to which the guest read it.
    Response {
        /// Status code.
        status: u16,
        /// Names and values of the header fields, in order.
        fields: Vec<(String, BinaryText)>,
        /// Body.
        body: BinaryText,
        /// Size of each body chunk, in bytes, in the order of arrival.
        pieces: Vec<u32>,
        /// Reason that the body is incomplete; `None` if it is complete.
        end: Option<HttpError>,
    },
    /// Failure without a response.
    Failed(HttpError),
}

/// Request errors that guests can receive, with the names of `wasi:http`.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[expect(
    missing_docs,
    reason = "the names are those of wasi:http, which explains them"
)]
pub enum HttpError {
    HttpRequestDenied,
    HttpRequestHeaderSectionSize,
    HttpRequestBodySize(Option<u64>),
    HttpResponseBodySize,
    HttpResponseHeaderSectionSize,
    HttpResponseIncomplete,
    HttpResponseTimeout,
    HttpProtocolError,
    DestinationIpProhibited,
    DestinationNotFound,
    DestinationUnavailable,
    DnsError,
    DnsTimeout,
    ConnectionLimitReached,
    ConnectionTimeout,
    ConnectionRefused,
    ConnectionReadTimeout,
    ConnectionTerminated,
    TlsCertificateError,
    TlsAlertReceived { id: u8, name: String },
    TlsProtocolError,
    InternalError(String),
}

impl HttpAnswer {
    /// Returns the approximate memory use, in bytes.
    pub fn approximate_bytes(&self) -> usize {
        match self {
            Self::Response {
                fields,
                body,
                pieces,
                ..
            } => {
                let fields: usize = fields
                    .iter()
                    .map(|(name, value)| name.len() + value.0.len())
                    .sum();
                fields + body.0.len() + pieces.len() * size_of::<u32>()
            }
            Self::Failed(HttpError::InternalError(why)) => why.len(),
            Self::Failed(_) => 0,
        }
    }
}
