//! HTTP requests of guests, as operators observe them.

use std::time::SystemTime;

use crate::trace::TraceContext;

/// An HTTP request that a guest sent, from its start until the guest has received the response or
/// dropped it. Contains the destination, but neither the path nor the body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpExchange {
    /// The span of the request. The request carries it to the server.
    pub span: TraceContext,
    /// The id of the parent span, which is the span of the call.
    pub parent_span_id: String,
    /// The method.
    pub method: String,
    /// `http` or `https`.
    pub scheme: &'static str,
    /// The host, in the spelling of grants.
    pub host: String,
    /// The port.
    pub port: u16,
    /// Time of the start.
    pub started_at: SystemTime,
    /// Time of the end.
    pub ended_at: SystemTime,
    /// The status of the response, if there was one.
    pub status: Option<u16>,
    /// The reason for the failure, in one word. `None` if the request did not fail, whatever its
    /// status is.
    pub error: Option<&'static str>,
}
