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
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn a_reservation_that_grew_is_released_as_a_whole() {
        let budget = ByteBudget::new(10);
        let mut reservation = budget.empty_reservation();
        reservation.grow(4).unwrap();
        reservation.try_grow(6).unwrap();
        assert_eq!(reservation.grow(1), Err(BudgetExhausted));
        assert_eq!(reservation.try_grow(usize::MAX), Err(BudgetExhausted));
        assert_eq!(
            (reservation.bytes(), budget.used()),
            (10, 10),
            "growth that fails keeps what was reserved"
        );
        drop(reservation);
        budget.charge(10).unwrap();
    }

    #[test]
    fn what_is_dropped_can_be_held_again() {
        let budget = ByteBudget::of_size(ByteSize::b(10));
        budget.charge(4).unwrap();
        let held = budget.reserve(6).unwrap();
        assert!(budget.charge(1).is_err());
        assert!(budget.is_exceeded());
        drop(held);
        budget.charge(6).unwrap();
        assert_eq!(budget.peak(), 10);
        assert!(budget.charge(usize::MAX).is_err(), "no overflow");
    }

    #[test]
    fn there_is_room_for_what_is_kept_and_for_what_takes_its_place() {
        let budget = ByteBudget::new(10);
        let one = budget.reserve_successor(None, 6).unwrap();
        assert_eq!(
            budget.reserve_successor(None, 5).unwrap_err(),
            BudgetExhausted
        );
        let two = budget.reserve_successor(None, 4).unwrap();
        let larger = budget.reserve_successor(Some(&one), 6).unwrap();
        assert!(
            budget.reserve_successor(Some(&one), 7).is_err()
                && budget.reserve_successor(Some(&one), usize::MAX).is_err()
        );
        let other = ByteBudget::new(10).reserve(10).unwrap();
        assert!(
            budget.reserve_successor(Some(&other), 1).is_err(),
            "what another budget holds makes no room in this one"
        );
        drop(one);
        assert!(budget.reserve_successor(None, 1).is_err());
        drop((two, larger));
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn nothing_always_fits_and_a_budget_of_nothing_has_room_for_nothing_else() {
        let budget = ByteBudget::new(0);
        let nothing = budget.reserve(0).unwrap();
        assert!(budget.try_charge(1).is_err() && !budget.is_exceeded());
        assert!(budget.reserve(1).is_err() && budget.is_exceeded());
        drop(nothing);
        assert_eq!((budget.used(), budget.peak(), budget.limit()), (0, 0, 0));
        let endless = ByteBudget::of_size(ByteSize(u64::MAX));
        let all = endless.reserve(usize::MAX).unwrap();
        assert!(endless.try_charge(1).is_err(), "no overflow");
        endless.charge(0).unwrap();
        drop(all);
        assert_eq!(endless.used(), 0);
    }

    #[test]
    fn a_reservation_shrinks_to_nothing_at_most() {
        let budget = ByteBudget::new(10);
        let mut reservation = budget.reserve(8).unwrap();
        reservation.shrink(3);
        assert_eq!((reservation.bytes(), budget.used()), (5, 5));
        reservation.shrink(9);
        assert_eq!((reservation.bytes(), budget.used()), (0, 0));
        drop(reservation);
        assert_eq!((budget.used(), budget.peak()), (0, 8));
    }

    #[test]
    fn reservations_are_released_in_any_order_and_outlive_the_budget() {
        let budget = ByteBudget::new(6);
        let clone = budget.clone();
        let [first, second, third] = [1, 2, 3].map(|bytes| budget.reserve(bytes).unwrap());
        drop(second);
        assert_eq!(clone.used(), 4);
        drop(budget);
        drop(first);
        assert_eq!(clone.used(), 3);
        drop(third);
        assert_eq!(clone.used(), 0);
    }

    #[test]
    fn many_threads_never_hold_more_than_there_is() {
        let budget = ByteBudget::new(100);
        thread::scope(|scope| {
            for bytes in 1..=4 {
                let budget = budget.clone();
                scope.spawn(move || {
                    for _ in 0..2_000 {
                        let mut held: Vec<_> =
                            (0..20).map_while(|_| budget.reserve(bytes).ok()).collect();
                        if let Some(last) = held.last_mut() {
                            let _ = last.try_grow(7);
                            last.shrink(1);
                        }
                        assert!(budget.used() <= 100);
                    }
                });
            }
        });
        assert_eq!(budget.used(), 0);
        assert!(budget.peak() <= 100 && budget.peak() > 0);
        budget.charge(100).unwrap();
    }
}
