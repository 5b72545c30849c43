//! The memory that recordings of calls take until they are written.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The memory that one call may take for its recording. It is given back when this is dropped.
#[derive(Debug)]
pub struct RecordingReservation {
    /// Bytes that all calls may still take.
    free: Arc<AtomicUsize>,
    taken: usize,
    /// Bytes that this call may take in all.
    most: usize,
}

impl RecordingReservation {
    /// Room for a call that may take `most` bytes, out of those that are `free` for all calls.
    pub fn new(free: &Arc<AtomicUsize>, most: usize) -> Self {
        Self { free: Arc::clone(free), taken: 0, most }
    }

    /// Takes some of it. Returns whether there is as much.
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

    /// Bytes that the call may still take, if others leave them.
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
