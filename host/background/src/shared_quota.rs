//! A quota on a shared quantity, such as bytes or connections. It limits the total and the share of
//! each owner.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;

/// A quota that several owners share. Each owner has a name. Not a `ByteBudget` of the crate
/// `model`: the total and the owner's share are checked under one lock, and a caller can wait.
#[derive(Debug)]
pub struct SharedQuota {
    all: usize,
    each: usize,
    taken: Mutex<QuotaState>,
    freed: Notify,
}

#[derive(Debug, Default)]
struct QuotaState {
    by_all: usize,
    /// The amounts by owner. Owners that hold nothing are absent.
    by: HashMap<Arc<str>, usize>,
}

/// An amount reserved by one owner. Dropping it releases the amount.
#[derive(Debug, Default)]
pub struct QuotaPortion {
    of: Option<(Arc<SharedQuota>, Arc<str>)>,
    amount: usize,
}

/// The limit that prevents a reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuotaExhausted {
    /// The owner has reached its share, which is this large.
    Own(usize),
    /// All owners together have reached the total, which is this large.
    All(usize),
}

impl QuotaExhausted {
    /// Returns the limit that was reached.
    pub fn limit(self) -> usize {
        match self {
            Self::Own(most) | Self::All(most) => most,
        }
    }
}

impl SharedQuota {
    /// Creates a quota of `total_limit` in total and at most `owner_limit` per owner.
    pub fn new(all: usize, each: usize) -> Arc<Self> {
        Arc::new(Self {
            all,
            each: each.min(all),
            taken: Mutex::default(),
            freed: Notify::new(),
        })
    }

    /// Reserves `amount` for the owner with this name.
    ///
    /// # Errors
    ///
    /// Returns an error if the amount exceeds the rest of the owner's share or of the total.
    pub fn try_reserve(
        self: &Arc<Self>,
        name: &str,
        amount: usize,
    ) -> Result<QuotaPortion, QuotaExhausted> {
        self.try_reserve_within(name, amount, self.each)
    }

    /// Like [`Self::try_reserve`], for an owner whose share is at most `share`.
    pub fn try_reserve_within(
        self: &Arc<Self>,
        name: &str,
        amount: usize,
        share: usize,
    ) -> Result<QuotaPortion, QuotaExhausted> {
        let name: Arc<str> = name.into();
        self.charge(&name, amount, share.min(self.each))?;
        Ok(QuotaPortion {
            of: Some((Arc::clone(self), name)),
            amount,
        })
    }

    /// Waits until `amount` is available within `share`, and reserves it.
    pub async fn reserve_within(
        self: &Arc<Self>,
        name: &str,
        amount: usize,
        share: usize,
    ) -> QuotaPortion {
        loop {
            // Created before the check, so that a release in between also wakes this future.
            let freed = self.freed.notified();
            if let Ok(portion) = self.try_reserve_within(name, amount, share) {
                return portion;
            }
            freed.await;
        }
    }

    /// Returns the amount that all owners hold.
    pub fn total_used(&self) -> usize {
        self.lock_state().by_all
    }

    /// Returns the maximum amount of one owner.
    pub fn share(&self) -> usize {
        self.each
    }

    /// Returns the amount that the owner with this name holds.
    pub fn of(&self, name: &str) -> usize {
        self.lock_state().by.get(name).copied().unwrap_or(0)
    }

    /// Checks whether the owner with this name can reserve `amount` more within `share`.
    fn check_available(
        &self,
        taken: &QuotaState,
        name: &str,
        amount: usize,
        share: usize,
    ) -> Result<(), QuotaExhausted> {
        let own = taken.by.get(name).copied().unwrap_or(0);
        if amount > share.saturating_sub(own) {
            return Err(QuotaExhausted::Own(share));
        }
        if amount > self.all.saturating_sub(taken.by_all) {
            return Err(QuotaExhausted::All(self.all));
        }
        Ok(())
    }

    fn charge(&self, name: &Arc<str>, amount: usize, share: usize) -> Result<(), QuotaExhausted> {
        let mut taken = self.lock_state();
        self.check_available(&taken, name, amount, share)?;
        if amount > 0 {
            taken.by_all += amount;
            *taken.by.entry(Arc::clone(name)).or_default() += amount;
        }
        Ok(())
    }

    fn release(&self, name: &Arc<str>, amount: usize) {
        if amount == 0 {
            return;
        }
        let mut taken = self.lock_state();
        taken.by_all = taken.by_all.saturating_sub(amount);
        if let Some(own) = taken.by.get_mut(name) {
            *own = own.saturating_sub(amount);
            if *own == 0 {
                taken.by.remove(name);
            }
        }
        drop(taken);
        self.freed.notify_waiters();
    }

    // Held for a few instructions and never across an await.
    fn lock_state(&self) -> MutexGuard<'_, QuotaState> {
        self.taken.lock()
    }
}

impl QuotaPortion {
    /// Reserves `amount` more.
    ///
    /// # Errors
    ///
    /// Like [`SharedQuota::try_reserve`]. The portion then stays unchanged.
    pub fn grow(&mut self, amount: usize) -> Result<(), QuotaExhausted> {
        if let Some((quota, name)) = &self.of {
            quota.charge(name, amount, quota.each)?;
            self.amount += amount;
        }
        Ok(())
    }

    /// Grows the portion to `amount` if it is smaller.
    ///
    /// # Errors
    ///
    /// Like [`SharedQuota::try_reserve`]. The portion then stays unchanged.
    pub fn grow_to(&mut self, amount: usize) -> Result<(), QuotaExhausted> {
        self.grow(amount.saturating_sub(self.amount))
    }

    /// Checks whether `amount` more is available now. Reserves nothing.
    ///
    /// # Errors
    ///
    /// Returns an error if it is not available, like [`SharedQuota::try_reserve`].
    pub fn check_available(&self, amount: usize) -> Result<(), QuotaExhausted> {
        self.of.as_ref().map_or(Ok(()), |(quota, name)| {
            quota.check_available(&quota.lock_state(), name, amount, quota.each)
        })
    }

    /// Releases this much of the portion.
    pub fn release(&mut self, amount: usize) {
        self.shrink_to(self.amount.saturating_sub(amount));
    }

    /// Releases the part of the portion that exceeds `amount`.
    pub fn shrink_to(&mut self, amount: usize) {
        if let Some((quota, name)) = &self.of
            && let Some(surplus) = self.amount.checked_sub(amount)
        {
            quota.release(name, surplus);
            self.amount = amount;
        }
    }
}

impl Drop for QuotaPortion {
    fn drop(&mut self) {
        self.shrink_to(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_owner_is_limited_to_its_share() {
        let quota = SharedQuota::new(10, 4);
        let mut ada = quota.try_reserve("ada", 3).unwrap();
        assert_eq!(
            quota.try_reserve("ada", 2).unwrap_err(),
            QuotaExhausted::Own(4)
        );
        ada.grow(1).unwrap();
        assert_eq!(ada.grow(1), Err(QuotaExhausted::Own(4)));
        assert_eq!(
            (ada.check_available(0), ada.check_available(1)),
            (Ok(()), Err(QuotaExhausted::Own(4)))
        );
        let others = ["bob", "cy"].map(|name| quota.try_reserve(name, 3).unwrap());
        assert_eq!(
            quota.try_reserve("dan", 1).unwrap_err(),
            QuotaExhausted::All(10)
        );
        ada.shrink_to(1);
        ada.shrink_to(2);
        assert_eq!(quota.of("ada"), 1);
        assert_eq!(
            quota.try_reserve_within("ada", 2, 2).unwrap_err(),
            QuotaExhausted::Own(2)
        );
        assert_eq!(
            quota.try_reserve_within("ada", 4, 9).unwrap_err(),
            QuotaExhausted::Own(4)
        );
        drop(quota.try_reserve("dan", 3).unwrap());
        drop((ada, others));
        assert!(quota.lock_state().by.is_empty() && quota.lock_state().by_all == 0);
        // A portion without a quota is unlimited.
        QuotaPortion::default().grow(usize::MAX).unwrap();
    }

    #[tokio::test]
    async fn a_reservation_waits_for_a_release() {
        let quota = SharedQuota::new(2, 1);
        let first = quota.try_reserve("ada", 1).unwrap();
        let _other = quota.try_reserve("bob", 1).unwrap();
        let waiting = tokio::spawn({
            let quota = Arc::clone(&quota);
            async move { drop(quota.reserve_within("ada", 1, 1).await) }
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        drop(first);
        waiting.await.unwrap();
    }
}
