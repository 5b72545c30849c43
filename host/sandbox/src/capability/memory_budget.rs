//! The memory budget of one call. Everything that the host holds for the guest counts against it.
//!
//! Linear memories and tables are counted by the
//! [`StoreLimiter`](crate::store::limiter::StoreLimiter), buffers behind handles by the parts of
//! WASI that Toolbay replaces ([`wasi`](crate::wasi::p2)), and standard output and error by
//! [`GuestOutput`](crate::capability::stdio::output_capture::GuestOutput). Entries of the resource
//! table are bounded by their number instead: `limits.handles`.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use bytesize::ByteSize;
use wasmtime_wasi::p2::FsError;

/// The memory budget of one call. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct MemoryBudget(Arc<BudgetState>);

#[derive(Debug)]
struct BudgetState {
    /// Maximum number of bytes that can be reserved at once.
    limit: usize,
    held: AtomicUsize,
    peak: AtomicUsize,
    overdrawn: AtomicBool,
}

/// Reserved bytes. Dropping the value releases them.
#[derive(Debug)]
pub(crate) struct MemoryReservation {
    account: MemoryBudget,
    bytes: usize,
}

/// Error for a reservation that exceeds the remaining budget. As the error of a host call, it ends
/// the call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BudgetExceeded;

impl MemoryBudget {
    /// Creates a budget of `limit` bytes.
    pub(crate) fn new(limit: ByteSize) -> Self {
        Self(Arc::new(BudgetState {
            limit: usize::try_from(limit.as_u64()).unwrap_or(usize::MAX),
            held: AtomicUsize::new(0),
            peak: AtomicUsize::new(0),
            overdrawn: AtomicBool::new(false),
        }))
    }

    /// Reserves `bytes` until the end of the call.
    pub(crate) fn charge(&self, bytes: usize) -> Result<(), BudgetExceeded> {
        self.try_charge(bytes)
            .inspect_err(|_| self.0.overdrawn.store(true, Ordering::Relaxed))
    }

    /// Like [`MemoryBudget::charge`], for an optional reservation. A refusal does not mark the
    /// budget as exceeded.
    pub(crate) fn try_charge(&self, bytes: usize) -> Result<(), BudgetExceeded> {
        let fits = |held: usize| held.checked_add(bytes).filter(|held| *held <= self.0.limit);
        let taken = self
            .0
            .held
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits);
        let before = taken.map_err(|_| BudgetExceeded)?;
        self.0.peak.fetch_max(before + bytes, Ordering::Relaxed);
        Ok(())
    }

    /// Reserves `bytes` until the returned value is dropped.
    pub(crate) fn reserve(&self, bytes: usize) -> Result<MemoryReservation, BudgetExceeded> {
        self.charge(bytes)?;
        Ok(MemoryReservation {
            account: self.clone(),
            bytes,
        })
    }

    /// Returns a reservation that can [grow](MemoryReservation::grow).
    pub(crate) fn empty_reservation(&self) -> MemoryReservation {
        MemoryReservation {
            account: self.clone(),
            bytes: 0,
        }
    }

    /// Returns the maximum number of bytes that can be reserved at once.
    pub(crate) fn limit(&self) -> usize {
        self.0.limit
    }

    /// Returns the highest number of bytes that were reserved at once.
    pub(crate) fn peak(&self) -> usize {
        self.0.peak.load(Ordering::Relaxed)
    }

    /// Returns whether a required reservation was refused.
    pub(crate) fn is_exceeded(&self) -> bool {
        self.0.overdrawn.load(Ordering::Relaxed)
    }
}

impl MemoryReservation {
    /// Reserves `bytes` more, until the whole reservation is dropped.
    pub(crate) fn grow(&mut self, bytes: usize) -> Result<(), BudgetExceeded> {
        self.account.charge(bytes)?;
        self.bytes += bytes;
        Ok(())
    }
}

impl Drop for MemoryReservation {
    fn drop(&mut self) {
        self.account.0.held.fetch_sub(self.bytes, Ordering::Relaxed);
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
