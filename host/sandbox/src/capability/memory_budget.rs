//! The memory budget of one call. Everything that the host holds for the guest counts against it.
//!
//! Linear memories and tables are counted by the
//! [`StoreLimiter`](crate::store::limiter::StoreLimiter), buffers behind handles by the parts of
//! WASI that Toolbay replaces ([`wasi`](crate::wasi::p2)), and standard output and error by
//! [`GuestOutput`](crate::capability::stdio::output_capture::GuestOutput). Entries of the resource
//! table are bounded by their number instead: `limits.handles`.

use std::fmt;

use bytesize::ByteSize;
use toolbay_model::{BudgetExhausted, ByteBudget, ByteReservation};
use wasmtime_wasi::p2::FsError;

/// The memory budget of one call: a [`ByteBudget`] whose exhaustion ends the call. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct MemoryBudget(ByteBudget);

/// Error for a reservation that exceeds the remaining budget. As the error of a host call, it ends
/// the call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BudgetExceeded;

impl MemoryBudget {
    /// Creates a budget of `limit` bytes.
    pub(crate) fn new(limit: ByteSize) -> Self {
        Self(ByteBudget::of_size(limit))
    }

    /// Reserves `bytes` until the end of the call.
    pub(crate) fn charge(&self, bytes: usize) -> Result<(), BudgetExceeded> {
        Ok(self.0.charge(bytes)?)
    }

    /// Like [`MemoryBudget::charge`], for an optional reservation. A refusal does not mark the
    /// budget as exceeded.
    pub(crate) fn try_charge(&self, bytes: usize) -> Result<(), BudgetExceeded> {
        Ok(self.0.try_charge(bytes)?)
    }

    /// Reserves `bytes` until the returned value is dropped.
    pub(crate) fn reserve(&self, bytes: usize) -> Result<ByteReservation, BudgetExceeded> {
        Ok(self.0.reserve(bytes)?)
    }

    /// Returns a reservation that can [grow](ByteReservation::grow).
    pub(crate) fn empty_reservation(&self) -> ByteReservation {
        self.0.empty_reservation()
    }

    /// Returns the maximum number of bytes that can be reserved at once.
    pub(crate) fn limit(&self) -> usize {
        self.0.limit()
    }

    /// Returns the highest number of bytes that were reserved at once.
    pub(crate) fn peak(&self) -> usize {
        self.0.peak()
    }

    /// Returns whether a required reservation was refused.
    pub(crate) fn is_exceeded(&self) -> bool {
        self.0.is_exceeded()
    }
}

impl From<BudgetExhausted> for BudgetExceeded {
    fn from(BudgetExhausted: BudgetExhausted) -> Self {
        Self
    }
}

impl fmt::Display for BudgetExceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the call has no memory left")
    }
}

impl std::error::Error for BudgetExceeded {}

impl From<BudgetExceeded> for FsError {
    fn from(overdrawn: BudgetExceeded) -> Self {
        Self::trap(overdrawn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reservation_that_grew_is_released_as_a_whole() {
        let budget = MemoryBudget::new(ByteSize::b(10));
        let mut reservation = budget.empty_reservation();
        reservation.grow(4).unwrap();
        reservation.grow(6).unwrap();
        assert!(reservation.grow(1).is_err());
        drop(reservation);
        budget.charge(10).unwrap();
    }

    #[test]
    fn released_bytes_can_be_reserved_again() {
        let account = MemoryBudget::new(ByteSize::b(10));
        account.charge(4).unwrap();
        let held = account.reserve(6).unwrap();
        assert!(account.charge(1).is_err());
        assert!(account.is_exceeded());
        drop(held);
        account.charge(6).unwrap();
        assert_eq!(account.peak(), 10);
        assert!(account.charge(usize::MAX).is_err(), "no overflow");
    }
}
