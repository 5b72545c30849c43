//! How long each step of a request may take.

use std::time::Duration;

/// The timeouts of one request, each within the deadline of its call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestTimeouts {
    /// From the beginning until a connection can be used: waiting for room, resolving, connecting, TLS.
    pub connect: Duration,
    /// How long the server may be silent before the head of its response. The time in which it takes in the request,
    /// and that in which the guest has not written the rest of it, do not count.
    pub first_byte: Duration,
    /// How long the server may be silent while somebody waits for the rest of a response.
    pub between_bytes: Duration,
}
