//! Counts with a limit.

use std::sync::atomic::{AtomicU64, Ordering};

/// A count of a call, such as its bytes, that never exceeds a limit. It has no reservations: nothing
/// is released before the call ends.
#[derive(Debug)]
pub struct TrafficCount {
    used: AtomicU64,
    limit: u64,
}

impl TrafficCount {
    /// Creates a count of at most `limit`.
    pub fn new(limit: u64) -> Self {
        Self {
            used: AtomicU64::new(0),
            limit,
        }
    }

    /// Adds `more` if the sum is within the limit, and returns whether it is.
    pub fn try_add(&self, more: u64) -> bool {
        let within = |used: u64| used.checked_add(more).filter(|sum| *sum <= self.limit);
        self.used
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, within)
            .is_ok()
    }

    /// Returns the sum, without what was rejected.
    pub fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// Returns the limit.
    pub fn limit(&self) -> u64 {
        self.limit
    }
}
