//! The memory of one call: what all that the guest has the host hold is drawn from.
//!
//! Linear memories and tables are counted by the [`StoreLimiter`](crate::limiter::StoreLimiter), buffers behind handles by the
//! parts of WASI that Toolbay replaces ([`wasi`](crate::wasi)), and standard output and error by
//! [`GuestOutput`](crate::output_capture::GuestOutput). Entries of the resource table are bounded by their number instead: `limits.handles`.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use bytesize::ByteSize;
use wasmtime_wasi::p2::FsError;

/// The account of one call. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct MemoryBudget(Arc<BudgetState>);

#[derive(Debug)]
struct BudgetState {
    /// The most bytes that can be held at once.
    limit: usize,
    held: AtomicUsize,
    peak: AtomicUsize,
    overdrawn: AtomicBool,
}

/// Bytes of an account. Dropping it gives them back.
#[derive(Debug)]
pub(crate) struct MemoryReservation {
    account: MemoryBudget,
    bytes: usize,
}

/// The account does not have as many bytes left. As the error of a host call, it ends the call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BudgetExceeded;

impl MemoryBudget {
    /// An account of `limit` bytes, of which none are held.
    pub(crate) fn new(limit: ByteSize) -> Self {
        Self(Arc::new(BudgetState {
            limit: usize::try_from(limit.as_u64()).unwrap_or(usize::MAX),
            held: AtomicUsize::new(0),
            peak: AtomicUsize::new(0),
            overdrawn: AtomicBool::new(false),
        }))
    }

    /// Takes `bytes` for as long as the call lasts.
    pub(crate) fn take(&self, bytes: usize) -> Result<(), BudgetExceeded> {
        self.try_take(bytes).inspect_err(|_| self.0.overdrawn.store(true, Ordering::Relaxed))
    }

    /// The same for what may do without: the account does not count as overdrawn if they are refused.
    pub(crate) fn try_take(&self, bytes: usize) -> Result<(), BudgetExceeded> {
        let fits = |held: usize| held.checked_add(bytes).filter(|held| *held <= self.0.limit);
        let taken = self.0.held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits);
        let before = taken.map_err(|_| BudgetExceeded)?;
        self.0.peak.fetch_max(before + bytes, Ordering::Relaxed);
        Ok(())
    }

    /// Takes `bytes` until the value is dropped.
    pub(crate) fn hold(&self, bytes: usize) -> Result<MemoryReservation, BudgetExceeded> {
        self.take(bytes)?;
        Ok(MemoryReservation { account: self.clone(), bytes })
    }

    /// The most bytes that can be held at once.
    pub(crate) fn limit(&self) -> usize {
        self.0.limit
    }

    /// The most bytes that were held at once.
    pub(crate) fn peak(&self) -> usize {
        self.0.peak.load(Ordering::Relaxed)
    }

    /// Whether bytes were refused.
    pub(crate) fn is_overdrawn(&self) -> bool {
        self.0.overdrawn.load(Ordering::Relaxed)
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
    fn what_is_dropped_can_be_held_again() {
        let account = MemoryBudget::new(ByteSize::b(10));
        account.take(4).unwrap();
        let held = account.hold(6).unwrap();
        assert!(account.take(1).is_err());
        assert!(account.is_overdrawn());
        drop(held);
        account.take(6).unwrap();
        assert_eq!(account.peak(), 10);
        assert!(account.take(usize::MAX).is_err(), "no overflow");
    }
}
