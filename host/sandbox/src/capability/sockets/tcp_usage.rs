//! TCP usage of one call.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use bytesize::ByteSize;
use toolbay_model::{Limit, Limits};

/// Counters for the TCP connections of one call and their bytes, with limits. Exceeding a limit
/// ends the call.
#[derive(Debug)]
pub(crate) struct TcpTraffic {
    connections: AtomicU64,
    bytes: AtomicU64,
    most_connections: u64,
    most_bytes: ByteSize,
    /// The first limit that was exceeded.
    exceeded: OnceLock<Limit>,
}

impl TcpTraffic {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            connections: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            most_connections: limits.tcp_connections,
            most_bytes: limits.tcp_bytes,
            exceeded: OnceLock::new(),
        }
    }

    /// Counts a connection that is about to be opened.
    pub(crate) fn count_connection(&self) -> Result<(), Limit> {
        add_within(&self.connections, 1, self.most_connections)
            .map_err(|()| self.record_exceeded(Limit::TcpConnections(self.most_connections)))
    }

    /// Counts bytes that are about to be sent or were received.
    pub(crate) fn count_bytes(&self, bytes: usize) -> Result<(), Limit> {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        add_within(&self.bytes, bytes, self.most_bytes.as_u64())
            .map_err(|()| self.record_exceeded(Limit::TcpBytes(self.most_bytes)))
    }

    /// Returns the first limit that was exceeded, if any.
    pub(crate) fn exceeded(&self) -> Option<Limit> {
        self.exceeded.get().copied()
    }

    /// Returns the numbers of connections and bytes so far, without rejected ones.
    pub(crate) fn totals(&self) -> (u64, u64) {
        (
            self.connections.load(Ordering::Relaxed),
            self.bytes.load(Ordering::Relaxed),
        )
    }

    fn record_exceeded(&self, limit: Limit) -> Limit {
        *self.exceeded.get_or_init(|| limit)
    }
}

/// Adds to a counter if the sum is within the limit.
fn add_within(count: &AtomicU64, more: u64, most: u64) -> Result<(), ()> {
    let within = |used: u64| used.checked_add(more).filter(|sum| *sum <= most);
    count
        .fetch_update(Ordering::Relaxed, Ordering::Relaxed, within)
        .map(drop)
        .map_err(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_over_a_limit_is_refused_and_not_counted() {
        let limits = Limits {
            tcp_connections: 2,
            tcp_bytes: ByteSize::b(10),
            ..Limits::DEFAULT
        };
        let traffic = TcpTraffic::new(&limits);
        traffic.count_connection().unwrap();
        traffic.count_connection().unwrap();
        traffic.count_bytes(10).unwrap();
        assert_eq!(traffic.exceeded(), None);
        let reached = Limit::TcpBytes(ByteSize::b(10));
        assert_eq!(traffic.count_bytes(usize::MAX), Err(reached));
        assert_eq!(
            traffic.count_connection(),
            Err(reached),
            "the first one stays"
        );
        assert_eq!(
            (traffic.totals(), traffic.exceeded()),
            ((2, 10), Some(reached))
        );
    }
}
