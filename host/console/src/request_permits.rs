//! Permits for requests, with a limit for each owner: an address, or a viewer. An owner that sends
//! many requests cannot prevent others from using the console.

use parking_lot::{Mutex, MutexGuard};
use std::collections::BTreeMap;

/// Maximum number of concurrent requests. Further requests are rejected, because a console serves
/// few people.
const MAX_REQUESTS: usize = 64;

/// Maximum number of concurrent requests of one owner.
pub(crate) const MAX_PER_OWNER: usize = MAX_REQUESTS / 4;

/// The permits for requests of one kind.
#[derive(Debug, Default)]
pub(crate) struct RequestPermits(Mutex<BTreeMap<String, usize>>);

/// A permit, which is released when it is dropped.
#[derive(Debug)]
pub(crate) struct RequestPermit<'a> {
    permits: &'a RequestPermits,
    owner: String,
}

impl RequestPermits {
    /// Acquires a permit for a request of this owner, if it is known. Returns `None` if the limit
    /// of the owner or the total limit is reached.
    pub(crate) fn try_acquire(&self, owner: Option<String>) -> Option<RequestPermit<'_>> {
        let most = if owner.is_some() {
            MAX_PER_OWNER
        } else {
            MAX_REQUESTS
        };
        let owner = owner.unwrap_or_default();
        let mut taken = self.lock_counts();
        let own = taken.get(&owner).copied().unwrap_or_default();
        if own >= most || taken.values().sum::<usize>() >= MAX_REQUESTS {
            return None;
        }
        taken.insert(owner.clone(), own + 1);
        Some(RequestPermit {
            permits: self,
            owner,
        })
    }

    // The lock is held for a few comparisons and never across an await.
    fn lock_counts(&self) -> MutexGuard<'_, BTreeMap<String, usize>> {
        self.0.lock()
    }
}

impl Drop for RequestPermit<'_> {
    fn drop(&mut self) {
        let mut taken = self.permits.lock_counts();
        if let Some(own) = taken.get_mut(&self.owner) {
            *own -= 1;
            if *own == 0 {
                taken.remove(&self.owner);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owner_cannot_acquire_all_permits() {
        let permits = RequestPermits::default();
        let of = |number: usize| permits.try_acquire(Some(format!("192.0.2.{number}")));
        let hostile: Vec<_> = (0..MAX_REQUESTS).map_while(|_| of(1)).collect();
        assert_eq!(hostile.len(), MAX_PER_OWNER);
        let others: Vec<_> = (0..MAX_REQUESTS)
            .map_while(|number| of(2 + number / MAX_PER_OWNER))
            .collect();
        assert_eq!(others.len(), MAX_REQUESTS - MAX_PER_OWNER);
        assert!(of(9).is_none() && permits.try_acquire(None).is_none());
        drop(hostile);
        assert!(of(9).is_some());
        drop(others);
        assert!(permits.lock_counts().is_empty());
        // Requests without a known owner have no separate limit.
        assert_eq!(
            (0..2 * MAX_REQUESTS)
                .map_while(|_| permits.try_acquire(None))
                .collect::<Vec<_>>()
                .len(),
            MAX_REQUESTS
        );
    }
}
