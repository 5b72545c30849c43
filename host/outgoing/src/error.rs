//! Errors of requests and of response bodies.

use thiserror::Error;
use toolbay_policy::{AddressesRefused, DenialReason};

use crate::request_meter::ExceededLimit;

/// The reason why a request has no response, or why the body of the response ended early.
///
/// The message is for the model: it contains no address, and no information about the host.
/// [`SendError::details`] is for the operator. The documentation of each variant ends with the
/// corresponding `error-code` of `wasi:http/types`.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SendError {
    /// No rule allows the request. `HTTP-request-denied`.
    #[error("{0}")]
    Denied(DenialReason),
    /// The field `Host` has another host than the URL of the request. `HTTP-request-denied`.
    #[error("The `Host` header must name the host of the request's address, or be left out.")]
    HostHeader,
    /// The fields or the target of the request are too long. `HTTP-request-header-section-size`.
    #[error("The request line and the headers must not exceed 64 KiB.")]
    RequestHeadTooLarge,
    /// The field `Content-Length` is not one number. `HTTP-request-body-size`.
    #[error("The `Content-Length` header of the request must be one decimal number.")]
    ContentLength,
    /// The body of the request has another length than its `Content-Length`, in bytes.
    /// `HTTP-request-body-size`.
    #[error(
        "The body of the request does not have the {0} bytes that its `Content-Length` header declares."
    )]
    RequestBodyLength(u64),
    /// The guest's body failed; for example, it was not finished. `internal-error`.
    #[error("The body of the request was not completed.")]
    RequestBody(String),
    /// The call has used all of its requests or bytes. `HTTP-request-denied` for requests, and
    /// `HTTP-request-body-size` or `HTTP-response-body-size` for bytes.
    #[error("{}", match .0 {
        ExceededLimit::Requests => "This call has reached its limit of HTTP requests.",
        ExceededLimit::Bytes => "This call has reached its limit of bytes sent and received over HTTP.",
    })]
    LimitExceeded(ExceededLimit),

    /// Every address of the host was refused. `destination-IP-prohibited`.
    #[error("This tool may not connect to the address of this host.")]
    AddressesRefused(AddressesRefused),
    /// The name has no address. `destination-not-found`.
    #[error("The host was not found: its name has no address.")]
    NoAddress,
    /// The name could not be resolved. `DNS-error`.
    #[error("The name of the host could not be resolved.")]
    Resolve(String),
    /// Resolving the name took longer than the timeout for connecting. `DNS-timeout`.
    #[error("The name of the host could not be resolved in time.")]
    ResolveTimeout,

    /// All connections of the plugin are in use, and none became free within the timeout for
    /// connecting. `connection-limit-reached`.
    #[error("This tool has reached its limit of open connections, and none became free in time.")]
    PluginConnectionLimit,
    /// All plugins together have the maximum number of open connections, and none became free
    /// within the timeout for connecting. `connection-limit-reached`.
    #[error("The server has reached its limit of open connections, and none became free in time.")]
    ServerConnectionLimit,
    /// No connection was established within the timeout. `connection-timeout`.
    #[error("The host did not accept a connection in time.")]
    ConnectTimeout,
    /// The host refused the connection. `connection-refused`.
    #[error("The host refused the connection.")]
    ConnectionRefused(String),
    /// The host is unreachable. `destination-unavailable`.
    #[error("The host cannot be reached.")]
    Unreachable(String),
    /// The operator's proxy did not establish a connection. Contains the status of its response, or
    /// 0 if it sent no valid response. `destination-unavailable`.
    #[error("The host cannot be reached: the proxy of the server did not connect to it.")]
    Proxy(u16),

    /// The certificate was not signed by a trusted authority. `TLS-certificate-error`.
    #[error("The certificate of the host was not issued by a trusted authority.")]
    CertificateUntrusted(String),
    /// The certificate has expired. `TLS-certificate-error`.
    #[error("The certificate of the host has expired.")]
    CertificateExpired(String),
    /// The certificate is not valid yet. `TLS-certificate-error`.
    #[error("The certificate of the host is not valid yet.")]
    CertificateNotYetValid(String),
    /// The certificate is for other names. `TLS-certificate-error`.
    #[error("The certificate of the host is for another name.")]
    CertificateNameMismatch(String),
    /// The certificate is invalid for another reason. `TLS-certificate-error`.
    #[error("The certificate of the host is not valid.")]
    CertificateInvalid(String),
    /// The host ended TLS with an alert. `TLS-alert-received`.
    #[error("The host ended the TLS connection with the alert {name} ({id}).")]
    TlsAlert {
        /// The number of the alert (RFC 8446, section 6).
        id: u8,
        /// Its name.
        name: String,
    },
    /// TLS failed in another way. `TLS-protocol-error`.
    #[error("No TLS connection to the host could be established.")]
    Tls(String),

    /// The server sent nothing before the head of its response. `connection-read-timeout`.
    #[error("The host did not answer in time.")]
    FirstByteTimeout,
    /// The server stopped sending during its response. `connection-read-timeout`.
    #[error("The host stopped sending in the middle of its response.")]
    BetweenBytesTimeout,
    /// The deadline of the call passed. `HTTP-response-timeout`.
    #[error("The call has reached its time limit.")]
    Deadline,
    /// The connection ended. `connection-terminated`.
    #[error("The connection to the host ended before the response was complete.")]
    Reset(String),
    /// The server sent data that is not valid HTTP. `HTTP-protocol-error`.
    #[error("The host did not answer with valid HTTP.")]
    Protocol(String),
    /// The head of the response is larger than 64 KiB or has more than 100 fields, or too many
    /// bytes preceded it. `HTTP-response-header-section-size`.
    #[error("The response has more than 64 KiB of headers, or more than 100 headers.")]
    HeadTooLarge,
    /// The body of the response does not have the length that the response declares.
    /// `HTTP-response-incomplete`.
    #[error("The response is incomplete: its body does not have the declared length.")]
    Incomplete(String),
}

impl From<ExceededLimit> for SendError {
    fn from(which: ExceededLimit) -> Self {
        Self::LimitExceeded(which)
    }
}

impl SendError {
    /// Returns the name of the corresponding `error-code` of `wasi:http/types`. The names are a
    /// small fixed set.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Denied(_) | Self::HostHeader | Self::LimitExceeded(ExceededLimit::Requests) => {
                "HTTP-request-denied"
            }
            Self::RequestHeadTooLarge => "HTTP-request-header-section-size",
            Self::ContentLength | Self::RequestBodyLength(_) => "HTTP-request-body-size",
            Self::RequestBody(_) => "internal-error",
            Self::LimitExceeded(ExceededLimit::Bytes) => "HTTP-response-body-size",
            Self::AddressesRefused(_) => "destination-IP-prohibited",
            Self::NoAddress => "destination-not-found",
            Self::Resolve(_) => "DNS-error",
            Self::ResolveTimeout => "DNS-timeout",
            Self::PluginConnectionLimit | Self::ServerConnectionLimit => "connection-limit-reached",
            Self::ConnectTimeout => "connection-timeout",
            Self::ConnectionRefused(_) => "connection-refused",
            Self::Unreachable(_) | Self::Proxy(_) => "destination-unavailable",
            Self::CertificateUntrusted(_)
            | Self::CertificateExpired(_)
            | Self::CertificateNotYetValid(_)
            | Self::CertificateNameMismatch(_)
            | Self::CertificateInvalid(_) => "TLS-certificate-error",
            Self::TlsAlert { .. } => "TLS-alert-received",
            Self::Tls(_) => "TLS-protocol-error",
            Self::FirstByteTimeout | Self::BetweenBytesTimeout => "connection-read-timeout",
            Self::Deadline => "HTTP-response-timeout",
            Self::Reset(_) => "connection-terminated",
            Self::Protocol(_) => "HTTP-protocol-error",
            Self::HeadTooLarge => "HTTP-response-header-section-size",
            Self::Incomplete(_) => "HTTP-response-incomplete",
        }
    }

    /// Returns details for the operator's log in addition to the message, or `None` if there are
    /// none.
    pub fn details(&self) -> Option<String> {
        match self {
            Self::Denied(denied) => denied.remedy().map(|remedy| format!("to allow it: {remedy}")),
            Self::AddressesRefused(refused) => {
                let addresses: Vec<String> =
                    refused.addresses().iter().map(|(address, why)| format!("{address} is {why}")).collect();
                let remedy = refused.remedy().map(|remedy| format!("; to allow it: {remedy}")).unwrap_or_default();
                Some(format!("{}{remedy}", addresses.join(", ")))
            }
            Self::RequestBody(details)
            | Self::Resolve(details)
            | Self::ConnectionRefused(details)
            | Self::Unreachable(details)
            | Self::CertificateUntrusted(details)
            | Self::CertificateExpired(details)
            | Self::CertificateNotYetValid(details)
            | Self::CertificateNameMismatch(details)
            | Self::CertificateInvalid(details)
            | Self::Tls(details)
            | Self::Reset(details)
            | Self::Protocol(details)
            | Self::Incomplete(details) => Some(details.clone()),
            Self::ServerConnectionLimit => Some(
                "the HTTP connections of all plugins share a sixteenth of the server's limit of open files; to allow \
                 more, raise the limit of open files (`ulimit -n`)"
                    .to_owned(),
            ),
            Self::Proxy(0) => Some("the proxy's response to CONNECT was not HTTP".to_owned()),
            Self::Proxy(status) => Some(format!("the proxy's response to CONNECT had the status {status}")),
            Self::HostHeader
            | Self::RequestHeadTooLarge
            | Self::ContentLength
            | Self::RequestBodyLength(_)
            | Self::LimitExceeded(_)
            | Self::NoAddress
            | Self::ResolveTimeout
            | Self::PluginConnectionLimit
            | Self::ConnectTimeout
            | Self::TlsAlert { .. }
            | Self::FirstByteTimeout
            | Self::BetweenBytesTimeout
            | Self::Deadline
            | Self::HeadTooLarge => None,
        }
    }
}
