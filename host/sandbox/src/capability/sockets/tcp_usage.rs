//! TCP usage of one call.

use std::sync::OnceLock;

use bytesize::ByteSize;
use toolbay_model::{Limit, Limits};
use toolbay_outgoing::TrafficCount;

/// Counters for the TCP connections of one call and their bytes, with limits. Exceeding a limit
/// ends the call.
#[derive(Debug)]
pub(crate) struct TcpTraffic {
    connections: TrafficCount,
    bytes: TrafficCount,
    /// The first limit that was exceeded.
    exceeded: OnceLock<Limit>,
}

impl TcpTraffic {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            connections: TrafficCount::new(limits.tcp_connections),
            bytes: TrafficCount::new(limits.tcp_bytes.as_u64()),
            exceeded: OnceLock::new(),
        }
    }

    /// Counts a connection that is about to be opened.
    pub(crate) fn count_connection(&self) -> Result<(), Limit> {
        if self.connections.try_add(1) {
            return Ok(());
        }
        Err(self.record_exceeded(Limit::TcpConnections(self.connections.limit())))
    }

    /// Counts bytes that are about to be sent or were received.
    pub(crate) fn count_bytes(&self, bytes: usize) -> Result<(), Limit> {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        if self.bytes.try_add(bytes) {
            return Ok(());
        }
        Err(self.record_exceeded(Limit::TcpBytes(ByteSize::b(self.bytes.limit()))))
    }

    /// Returns the first limit that was exceeded, if any.
    pub(crate) fn exceeded(&self) -> Option<Limit> {
        self.exceeded.get().copied()
    }

    /// Returns the numbers of connections and bytes so far, without rejected ones.
    pub(crate) fn totals(&self) -> (u64, u64) {
        (self.connections.used(), self.bytes.used())
    }

    fn record_exceeded(&self, limit: Limit) -> Limit {
        *self.exceeded.get_or_init(|| limit)
    }
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
            "the first exceeded limit is reported"
        );
        assert_eq!(
            (traffic.totals(), traffic.exceeded()),
            ((2, 10), Some(reached))
        );
    }
}
