//! Memory budget of recordings that are not written yet.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Memory reserved for the recording of one call. Released when dropped.
#[derive(Debug)]
pub struct RecordingReservation {
    /// Bytes that are free for all calls.
    available: Arc<AtomicUsize>,
    reserved: usize,
    /// Maximum number of bytes for this call.
    max_bytes: usize,
}

impl RecordingReservation {
    /// Creates an empty reservation for a call. It can grow to `max_bytes` bytes, from those that
    /// are `available` for all calls.
    pub fn new(free: &Arc<AtomicUsize>, most: usize) -> Self {
        Self {
            available: Arc::clone(free),
            reserved: 0,
            max_bytes: most,
        }
    }

    /// Reserves more bytes. Returns whether they were available.
    pub fn try_reserve(&mut self, bytes: usize) -> bool {
        if bytes > self.max_bytes.saturating_sub(self.reserved) {
            return false;
        }
        let fits = |free: usize| free.checked_sub(bytes);
        let taken = self
            .available
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits)
            .is_ok();
        if taken {
            self.reserved += bytes;
        }
        taken
    }

    /// Returns the number of bytes that the call may still reserve, if other calls leave them free.
    pub fn remaining_bytes(&self) -> usize {
        self.max_bytes.saturating_sub(self.reserved)
    }
}

impl Drop for RecordingReservation {
    fn drop(&mut self) {
        self.available.fetch_add(self.reserved, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reservation_is_limited_per_call_and_in_total() {
        let free = Arc::new(AtomicUsize::new(10));
        let mut one = RecordingReservation::new(&free, 6);
        let mut other = RecordingReservation::new(&free, 6);
        assert!(
            one.try_reserve(4) && !one.try_reserve(3) && one.try_reserve(2) && !one.try_reserve(1)
        );
        assert_eq!((one.remaining_bytes(), other.remaining_bytes()), (0, 6));
        assert!(!other.try_reserve(5) && other.try_reserve(4));
        drop(one);
        assert!(other.try_reserve(2));
        drop(other);
        assert_eq!(free.load(Ordering::Relaxed), 10);
    }
}
