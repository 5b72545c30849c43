//! Timeouts of requests.

use std::time::Duration;

/// The timeouts of one request, each within the deadline of its call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestTimeouts {
    /// Time until a connection can be used: waiting for a slot, resolving, connecting, TLS.
    pub connect: Duration,
    /// Maximum silence of the server before the head of its response. The time in which the server
    /// accepts the request, and the time in which the guest has not written the rest of it, do not
    /// count.
    pub first_byte: Duration,
    /// Maximum silence of the server while a reader waits for the rest of a response.
    pub between_bytes: Duration,
}
