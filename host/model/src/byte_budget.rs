//! A number of bytes that several holders share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use bytesize::ByteSize;

/// A number of bytes that several holders share, without locks and without waiting. Clones share it.
#[derive(Clone, Debug)]
pub struct ByteBudget(Arc<BudgetState>);

#[derive(Debug)]
struct BudgetState {
    /// Maximum number of bytes that can be reserved at once.
    limit: usize,
    used: AtomicUsize,
    peak: AtomicUsize,
    exceeded: AtomicBool,
}

/// Reserved bytes. Dropping the value releases them.
#[derive(Debug)]
pub struct ByteReservation {
    budget: ByteBudget,
    bytes: usize,
}

/// The budget has too few bytes left. Not an error by itself, because its meaning depends on the
/// budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BudgetExhausted;

impl ByteBudget {
    /// Creates a budget of `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self(Arc::new(BudgetState {
            limit,
            used: AtomicUsize::new(0),
            peak: AtomicUsize::new(0),
            exceeded: AtomicBool::new(false),
        }))
    }

    /// Creates a budget of this size.
    pub fn of_size(limit: ByteSize) -> Self {
        Self::new(usize::try_from(limit.as_u64()).unwrap_or(usize::MAX))
    }

    /// Reserves `bytes` for as long as the budget exists.
    ///
    /// # Errors
    ///
    /// The budget has too few bytes left. It is marked as [exceeded](Self::is_exceeded).
    pub fn charge(&self, bytes: usize) -> Result<(), BudgetExhausted> {
        self.try_charge(bytes)
            .inspect_err(|_| self.0.exceeded.store(true, Ordering::Relaxed))
    }

    /// Like [`ByteBudget::charge`], for optional bytes. A refusal does not mark the budget as
    /// exceeded.
    ///
    /// # Errors
    ///
    /// The budget has too few bytes left.
    pub fn try_charge(&self, bytes: usize) -> Result<(), BudgetExhausted> {
        self.add(bytes, 0)
    }

    /// Reserves `bytes` until the returned value is dropped.
    ///
    /// # Errors
    ///
    /// As [`ByteBudget::charge`].
    pub fn reserve(&self, bytes: usize) -> Result<ByteReservation, BudgetExhausted> {
        self.charge(bytes)?;
        Ok(self.reservation(bytes))
    }

    /// Reserves `bytes` for the successor of what `previous` is reserved for. The previous
    /// reservation does not count: both exist only until the old one is no longer used.
    ///
    /// # Errors
    ///
    /// As [`ByteBudget::charge`].
    pub fn reserve_successor(
        &self,
        previous: Option<&ByteReservation>,
        bytes: usize,
    ) -> Result<ByteReservation, BudgetExhausted> {
        let replaced = previous
            .filter(|previous| Arc::ptr_eq(&previous.budget.0, &self.0))
            .map_or(0, |previous| previous.bytes);
        self.add(bytes, replaced)
            .inspect_err(|_| self.0.exceeded.store(true, Ordering::Relaxed))?;
        Ok(self.reservation(bytes))
    }

    /// Returns a reservation that can [grow](ByteReservation::grow).
    pub fn empty_reservation(&self) -> ByteReservation {
        self.reservation(0)
    }

    /// Returns the maximum number of bytes that can be reserved at once.
    pub fn limit(&self) -> usize {
        self.0.limit
    }

    /// Returns the number of bytes that are reserved.
    pub fn used(&self) -> usize {
        self.0.used.load(Ordering::Relaxed)
    }

    /// Returns the highest number of bytes that were reserved at once.
    pub fn peak(&self) -> usize {
        self.0.peak.load(Ordering::Relaxed)
    }

    /// Returns whether bytes were refused that were not optional.
    pub fn is_exceeded(&self) -> bool {
        self.0.exceeded.load(Ordering::Relaxed)
    }

    /// Adds `bytes` to those that are used, of which `replaced` do not count against the limit.
    fn add(&self, bytes: usize, replaced: usize) -> Result<(), BudgetExhausted> {
        let fits = |used: usize| {
            used.checked_add(bytes)
                .filter(|sum| sum.saturating_sub(replaced) <= self.0.limit)
        };
        let before = self
            .0
            .used
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits)
            .map_err(|_| BudgetExhausted)?;
        let sum = before + bytes;
        // Most of the time, a read of the cache line that was just written is enough.
        if sum > self.0.peak.load(Ordering::Relaxed) {
            self.0.peak.fetch_max(sum, Ordering::Relaxed);
        }
        Ok(())
    }

    fn release(&self, bytes: usize) {
        self.0.used.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Returns a reservation of bytes that are counted already.
    fn reservation(&self, bytes: usize) -> ByteReservation {
        ByteReservation {
            budget: self.clone(),
            bytes,
        }
    }
}

impl ByteReservation {
    /// Returns the number of reserved bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Reserves `bytes` more.
    ///
    /// # Errors
    ///
    /// As [`ByteBudget::charge`]. The reservation stays as it was.
    pub fn grow(&mut self, bytes: usize) -> Result<(), BudgetExhausted> {
        self.budget.charge(bytes)?;
        self.bytes += bytes;
        Ok(())
    }

    /// Like [`ByteReservation::grow`], for optional bytes.
    ///
    /// # Errors
    ///
    /// As [`ByteBudget::try_charge`]. The reservation stays as it was.
    pub fn try_grow(&mut self, bytes: usize) -> Result<(), BudgetExhausted> {
        self.budget.try_charge(bytes)?;
        self.bytes += bytes;
        Ok(())
    }

    /// Releases `bytes`, or all if there are fewer.
    pub fn shrink(&mut self, bytes: usize) {
        let released = bytes.min(self.bytes);
        self.bytes -= released;
        self.budget.release(released);
    }
}

impl Drop for ByteReservation {
    fn drop(&mut self) {
        self.budget.release(self.bytes);
    }
}

#[cfg(test)]
mod tests;
