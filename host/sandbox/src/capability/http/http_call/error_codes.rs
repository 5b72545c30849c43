//! Mapping of request errors to the error codes of `wasi:http`.

use toolbay_outgoing::{ExceededLimit, SendError};
use toolbay_recording::HttpError;
use wasmtime_wasi_http::Error;

/// Returns the error code for the guest.
pub(super) fn code(error: &SendError) -> Error {
    recorded_error_code(recordable_error(error))
}

/// Like [`code`], as a value that can be recorded.
pub(super) fn recordable_error(error: &SendError) -> HttpError {
    match error {
        SendError::Denied(_)
        | SendError::HostHeader
        | SendError::LimitExceeded(ExceededLimit::Requests) => HttpError::HttpRequestDenied,
        SendError::RequestHeadTooLarge => HttpError::HttpRequestHeaderSectionSize,
        SendError::ContentLength => HttpError::HttpRequestBodySize(None),
        SendError::RequestBodyLength(length) => HttpError::HttpRequestBodySize(Some(*length)),
        SendError::LimitExceeded(ExceededLimit::Bytes) => HttpError::HttpResponseBodySize,
        SendError::AddressesRefused(_) => HttpError::DestinationIpProhibited,
        SendError::NoAddress => HttpError::DestinationNotFound,
        SendError::Resolve(_) => HttpError::DnsError,
        SendError::ResolveTimeout => HttpError::DnsTimeout,
        SendError::PluginConnectionLimit | SendError::ServerConnectionLimit => {
            HttpError::ConnectionLimitReached
        }
        SendError::ConnectTimeout => HttpError::ConnectionTimeout,
        SendError::ConnectionRefused(_) => HttpError::ConnectionRefused,
        SendError::Unreachable(_) | SendError::Proxy(_) => HttpError::DestinationUnavailable,
        SendError::CertificateUntrusted(_)
        | SendError::CertificateExpired(_)
        | SendError::CertificateNotYetValid(_)
        | SendError::CertificateNameMismatch(_)
        | SendError::CertificateInvalid(_) => HttpError::TlsCertificateError,
        SendError::TlsAlert { id, name } => HttpError::TlsAlertReceived {
            id: *id,
            name: name.clone(),
        },
        SendError::Tls(_) => HttpError::TlsProtocolError,
        SendError::FirstByteTimeout | SendError::BetweenBytesTimeout => {
            HttpError::ConnectionReadTimeout
        }
        SendError::Deadline => HttpError::HttpResponseTimeout,
        SendError::Reset(_) => HttpError::ConnectionTerminated,
        SendError::Protocol(_) => HttpError::HttpProtocolError,
        SendError::HeadTooLarge => HttpError::HttpResponseHeaderSectionSize,
        SendError::Incomplete(_) => HttpError::HttpResponseIncomplete,
        SendError::RequestBody(_) => {
            HttpError::InternalError("the body of the request was not completed".to_owned())
        }
    }
}

/// Returns the error code for the guest from a recorded error.
pub(super) fn recorded_error_code(error: HttpError) -> Error {
    match error {
        HttpError::HttpRequestDenied => Error::HttpRequestDenied,
        HttpError::HttpRequestHeaderSectionSize => Error::HttpRequestHeaderSectionSize(None),
        HttpError::HttpRequestBodySize(size) => Error::HttpRequestBodySize(size),
        HttpError::HttpResponseBodySize => Error::HttpResponseBodySize(None),
        HttpError::HttpResponseHeaderSectionSize => Error::HttpResponseHeaderSectionSize(None),
        HttpError::HttpResponseIncomplete => Error::HttpResponseIncomplete,
        HttpError::HttpResponseTimeout => Error::HttpResponseTimeout,
        HttpError::HttpProtocolError => Error::HttpProtocolError,
        HttpError::DestinationIpProhibited => Error::DestinationIpProhibited,
        HttpError::DestinationNotFound => Error::DestinationNotFound,
        HttpError::DestinationUnavailable => Error::DestinationUnavailable,
        HttpError::DnsError => Error::DnsError {
            rcode: None,
            info_code: None,
        },
        HttpError::DnsTimeout => Error::DnsTimeout,
        HttpError::ConnectionLimitReached => Error::ConnectionLimitReached,
        HttpError::ConnectionTimeout => Error::ConnectionTimeout,
        HttpError::ConnectionRefused => Error::ConnectionRefused,
        HttpError::ConnectionReadTimeout => Error::ConnectionReadTimeout,
        HttpError::ConnectionTerminated => Error::ConnectionTerminated,
        HttpError::TlsCertificateError => Error::TlsCertificateError,
        HttpError::TlsAlertReceived { id, name } => Error::TlsAlertReceived {
            alert_id: Some(id),
            alert_message: Some(name),
        },
        HttpError::TlsProtocolError => Error::TlsProtocolError,
        HttpError::InternalError(why) => Error::InternalError(Some(why)),
    }
}
