//! Memory budget of recordings that are not written yet.

use toolbay_model::{ByteBudget, ByteReservation};

/// Memory reserved for the recording of one call. Released when dropped. In contrast to a plain
/// [`ByteReservation`], it has a maximum.
#[derive(Debug)]
pub struct RecordingReservation {
    reservation: ByteReservation,
    /// Maximum number of bytes for this call.
    max_bytes: usize,
}

impl RecordingReservation {
    /// Creates an empty reservation for a call. It can grow to `max_bytes` bytes, from the budget
    /// of all calls.
    pub fn new(budget: &ByteBudget, max_bytes: usize) -> Self {
        Self {
            reservation: budget.empty_reservation(),
            max_bytes,
        }
    }

    /// Reserves more bytes. Returns whether they were available.
    pub fn try_reserve(&mut self, bytes: usize) -> bool {
        bytes <= self.remaining_bytes() && self.reservation.try_grow(bytes).is_ok()
    }

    /// Returns the number of bytes that the call may still reserve, if other calls leave them free.
    pub fn remaining_bytes(&self) -> usize {
        self.max_bytes.saturating_sub(self.reservation.bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reservation_is_limited_per_call_and_in_total() {
        let budget = ByteBudget::new(10);
        let mut one = RecordingReservation::new(&budget, 6);
        let mut other = RecordingReservation::new(&budget, 6);
        assert!(
            one.try_reserve(4) && !one.try_reserve(3) && one.try_reserve(2) && !one.try_reserve(1)
        );
        assert_eq!((one.remaining_bytes(), other.remaining_bytes()), (0, 6));
        assert!(!other.try_reserve(5) && other.try_reserve(4));
        drop(one);
        assert!(other.try_reserve(2));
        drop(other);
        assert_eq!(budget.used(), 0);
    }
}
