//! Requests of guests, before they are authorized.

use std::fmt;

use http::{Method, Uri};
use toolbay_model::{ByteReservation, Limits};
use toolbay_outgoing::RequestTimeouts;
use wasmtime_wasi_http::{RequestOptions, WasiBody};

use crate::capability::memory_budget::MemoryBudget;

/// A request as a guest wrote it, in any version of `wasi:http`.
pub(crate) struct GuestRequest {
    /// The request, without the field `Host`, which guests cannot set.
    pub(crate) request: http::Request<WasiBody>,
    pub(crate) options: Option<RequestOptions>,
    /// The memory reservation of the request, which is held until its response is dropped. `None`
    /// if no request can be sent.
    pub(crate) reservation: Option<ByteReservation>,
    /// The budget to which the trailers of the response are charged. `None` if they are charged when
    /// the guest gets them.
    pub(crate) trailer_budget: Option<MemoryBudget>,
}

/// The method and the URL of a request as the guest wrote it, without secrets, for recordings.
pub(super) struct RequestLine {
    method: Method,
    uri: Uri,
}

impl RequestLine {
    pub(super) fn of<B>(request: &http::Request<B>) -> Self {
        Self {
            method: request.method().clone(),
            uri: request.uri().clone(),
        }
    }

    /// Returns the URL.
    pub(super) fn uri(&self) -> &Uri {
        &self.uri
    }

    /// Returns whether the request has no lasting effect.
    pub(super) fn is_read(&self) -> bool {
        [Method::GET, Method::HEAD].contains(&self.method)
    }
}

impl fmt::Display for RequestLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.method, self.uri)
    }
}

/// Returns the timeouts that the guest requests, or the maximum for those that it omits.
pub(super) fn timeouts(options: Option<RequestOptions>) -> RequestTimeouts {
    let options = options.unwrap_or_default();
    let maximum = Limits::UTMOST.timeout;
    RequestTimeouts {
        connect: options.connect_timeout.unwrap_or(maximum),
        first_byte: options.first_byte_timeout.unwrap_or(maximum),
        between_bytes: options.between_bytes_timeout.unwrap_or(maximum),
    }
}
