//! What came of an HTTP request.

use serde::{Deserialize, Serialize};

use crate::blob::BinaryText;

/// What came of an HTTP request, as the guest saw it.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum HttpAnswer {
    /// A response, as far as the guest read it.
    Response {
        /// The status code.
        status: u16,
        /// Names and values of the fields, in order.
        fields: Vec<(String, BinaryText)>,
        /// The body.
        body: BinaryText,
        /// Bytes of each piece of the body, in the order in which they came.
        pieces: Vec<u32>,
        /// Why there is no more of the body; `None` if this is all of it.
        end: Option<HttpError>,
    },
    /// No response.
    Nothing(HttpError),
}

/// The errors of a request that a guest can see, in the words of `wasi:http`.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "the names are those of wasi:http, which explains them")]
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
    /// The bytes that it takes, about.
    pub fn size(&self) -> usize {
        match self {
            Self::Response { fields, body, pieces, .. } => {
                let fields: usize = fields.iter().map(|(name, value)| name.len() + value.0.len()).sum();
                fields + body.0.len() + pieces.len() * size_of::<u32>()
            }
            Self::Nothing(HttpError::InternalError(why)) => why.len(),
            Self::Nothing(_) => 0,
        }
    }
}
