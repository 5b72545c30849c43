//! An HTTP request that a guest sent, as operators see it.

use std::time::SystemTime;

use crate::trace::TraceContext;

/// An HTTP request that a guest sent, from its beginning until the guest had the response or wanted no more of it. What was
/// asked for is not in it, but where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpExchange {
    /// The span of the request, which the request carries.
    pub own: TraceContext,
    /// The id of the span that it is a part of: that of the call.
    pub parent: String,
    /// The method.
    pub method: String,
    /// `http` or `https`.
    pub scheme: &'static str,
    /// The host, as the grant writes it.
    pub host: String,
    /// The port.
    pub port: u16,
    /// When it began.
    pub began: SystemTime,
    /// When it ended.
    pub ended: SystemTime,
    /// The status of the response, if there was one.
    pub status: Option<u16>,
    /// Why it failed, in one word; `None` if it did not, whatever the status is.
    pub error: Option<&'static str>,
}
