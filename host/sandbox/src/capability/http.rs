//! Outgoing HTTP requests of a call.

pub(crate) mod http_call;
pub(crate) mod pending_requests;
