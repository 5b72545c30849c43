//! Outgoing HTTP requests of a call.

pub(crate) mod guest_request;
pub(crate) mod http_call;
pub(crate) mod memory_bounds;
pub(crate) mod pending_requests;
