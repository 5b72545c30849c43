//! Connections beyond the limit: a few that send health probes or wait for a place.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio_util::sync::CancellationToken;

/// Maximum number of these connections.
const MAX_OVERFLOW_CONNECTIONS: usize = 32;

/// Timeout for receiving the head of a request, if `http.idle_timeout` is not shorter.
pub(super) const OVERFLOW_HEAD_TIMEOUT: Duration = Duration::from_secs(2);

/// Timeout for waiting for a place.
pub(super) const ADMISSION_TIMEOUT: Duration = Duration::from_secs(5);

/// The connections beyond the limit, in the order of their arrival.
#[derive(Debug, Default)]
pub(super) struct OverflowConnections {
    slots: Mutex<VecDeque<(Arc<str>, CancellationToken)>>,
}

/// A slot for a connection beyond the limit. Dropping it frees the slot.
#[derive(Debug)]
pub(super) struct OverflowSlot {
    overflow: Arc<OverflowConnections>,
    /// Cancelled when another connection takes over the slot.
    pub(super) evicted: CancellationToken,
}

impl OverflowConnections {
    /// Acquires a slot for a peer: a network or an account. If all slots are taken, the oldest slot
    /// of the peer that has the most is evicted.
    pub(super) fn acquire(self: &Arc<Self>, peer: &str) -> OverflowSlot {
        let taken = CancellationToken::new();
        let mut seats = self.lock_slots();
        seats.push_back((peer.into(), taken.clone()));
        if seats.len() > MAX_OVERFLOW_CONNECTIONS {
            let mut counts: HashMap<&str, usize> = HashMap::new();
            for (peer, _) in seats.iter() {
                *counts.entry(peer).or_default() += 1;
            }
            let most = counts.values().copied().max();
            let oldest = seats
                .iter()
                .position(|(peer, _)| counts.get(&**peer).copied() == most);
            if let Some((_, taken)) = oldest.and_then(|oldest| seats.remove(oldest)) {
                taken.cancel();
            }
        }
        drop(seats);
        OverflowSlot {
            overflow: Arc::clone(self),
            evicted: taken,
        }
    }

    // Held for a few instructions and never across an await.
    fn lock_slots(&self) -> MutexGuard<'_, VecDeque<(Arc<str>, CancellationToken)>> {
        self.slots.lock()
    }
}

impl Drop for OverflowSlot {
    fn drop(&mut self) {
        // Cancelling the token marks the own entry for removal.
        self.evicted.cancel();
        self.overflow
            .lock_slots()
            .retain(|(_, taken)| !taken.is_cancelled());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crowd_loses_its_own_seats() {
        let reserve = Arc::new(OverflowConnections::default());
        let probe = reserve.acquire("192.0.2.7");
        let crowd: Vec<OverflowSlot> = (0..1000).map(|_| reserve.acquire("198.51.100.1")).collect();
        assert_eq!(
            crowd
                .iter()
                .filter(|seat| !seat.evicted.is_cancelled())
                .count(),
            MAX_OVERFLOW_CONNECTIONS - 1
        );
        assert!(
            crowd
                .last()
                .is_some_and(|seat| !seat.evicted.is_cancelled()),
            "the newest has one"
        );
        assert!(!probe.evicted.is_cancelled());
        drop((crowd, probe));
        assert!(reserve.lock_slots().is_empty());
    }
}
