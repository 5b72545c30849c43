//! Memory budget of recordings that are not written yet.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Memory reserved for the recording of one call. Released when dropped.
#[derive(Debug)]
pub struct RecordingReservation {
    /// Bytes that are free for all calls.
    free: Arc<AtomicUsize>,
    taken: usize,
    /// Maximum number of bytes for this call.
    most: usize,
}

impl RecordingReservation {
    /// Creates an empty reservation for a call. It can grow to `most` bytes, from those that are
    /// `free` for all calls.
    pub fn new(free: &Arc<AtomicUsize>, most: usize) -> Self {
        Self { free: Arc::clone(free), taken: 0, most }
    }

    /// Reserves more bytes. Returns whether they were available.
    pub fn take(&mut self, bytes: usize) -> bool {
        if bytes > self.most.saturating_sub(self.taken) {
            return false;
        }
        let fits = |free: usize| free.checked_sub(bytes);
        let taken = self.free.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_ok();
        if taken {
            self.taken += bytes;
        }
        taken
    }

    /// Returns the number of bytes that the call may still reserve, if other calls leave them free.
    pub fn left(&self) -> usize {
        self.most.saturating_sub(self.taken)
    }
}

impl Drop for RecordingReservation {
    fn drop(&mut self) {
        self.free.fetch_add(self.taken, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_takes_no_more_than_its_own_part_and_than_there_is() {
        let free = Arc::new(AtomicUsize::new(10));
        let (mut one, mut other) = (RecordingReservation::new(&free, 6), RecordingReservation::new(&free, 6));
        assert!(one.take(4) && !one.take(3) && one.take(2) && !one.take(1));
        assert_eq!((one.left(), other.left()), (0, 6));
        assert!(!other.take(5) && other.take(4));
        drop(one);
        assert!(other.take(2));
        drop(other);
        assert_eq!(free.load(Ordering::Relaxed), 10);
    }
}
