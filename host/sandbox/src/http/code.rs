//! Errors of requests in the words of `wasi:http`.

use toolbay_outgoing::{SendError, Which};
use wasmtime_wasi_http::Error;

/// The error that a guest sees.
pub(super) fn code(error: SendError) -> Error {
    match error {
        SendError::Denied(_) | SendError::HostHeader | SendError::Meter(Which::Requests) => Error::HttpRequestDenied,
        SendError::RequestHeadTooLarge => Error::HttpRequestHeaderSectionSize(None),
        SendError::ContentLength => Error::HttpRequestBodySize(None),
        SendError::RequestBodyLength(length) => Error::HttpRequestBodySize(Some(length)),
        SendError::Meter(Which::Bytes) => Error::HttpResponseBodySize(None),
        SendError::Addresses(_) => Error::DestinationIpProhibited,
        SendError::NoAddress => Error::DestinationNotFound,
        SendError::Resolve(_) => Error::DnsError { rcode: None, info_code: None },
        SendError::ResolveTimeout => Error::DnsTimeout,
        SendError::NoConnection | SendError::NoSocket => Error::ConnectionLimitReached,
        SendError::ConnectTimeout => Error::ConnectionTimeout,
        SendError::ConnectionRefused(_) => Error::ConnectionRefused,
        SendError::Unreachable(_) | SendError::Proxy(_) => Error::DestinationUnavailable,
        SendError::CertificateUntrusted(_)
        | SendError::CertificateExpired(_)
        | SendError::CertificateNotYetValid(_)
        | SendError::CertificateName(_)
        | SendError::Certificate(_) => Error::TlsCertificateError,
        SendError::TlsAlert { id, name } => Error::TlsAlertReceived { alert_id: Some(id), alert_message: Some(name) },
        SendError::Tls(_) => Error::TlsProtocolError,
        SendError::FirstByteTimeout | SendError::BetweenBytesTimeout => Error::ConnectionReadTimeout,
        SendError::Deadline => Error::HttpResponseTimeout,
        SendError::Reset(_) => Error::ConnectionTerminated,
        SendError::Protocol(_) => Error::HttpProtocolError,
        SendError::HeadTooLarge => Error::HttpResponseHeaderSectionSize(None),
        SendError::Incomplete(_) => Error::HttpResponseIncomplete,
        SendError::RequestBody(_) => Error::InternalError(Some("the body of the request was not completed".to_owned())),
    }
}
