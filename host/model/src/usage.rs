//! Resource usage of calls.

use std::time::Duration;

/// The resources that a call used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallUsage {
    /// wasmtime fuel: about one unit per WebAssembly instruction. After a deadline or a
    /// cancellation, the fuel used up to the last yield.
    pub fuel: u64,
    /// Wall-clock time from instantiation to the guest's return.
    pub wall: Duration,
    /// Peak linear memory in bytes, summed over all memories of the component.
    pub memory: u64,
    /// Number of HTTP requests that were sent.
    pub http_requests: u64,
    /// Bytes of HTTP requests and responses, heads included.
    pub http_bytes: u64,
    /// Number of TCP connections that were established or attempted.
    pub tcp_connections: u64,
    /// Bytes that were sent and received over TCP connections.
    pub tcp_bytes: u64,
}
