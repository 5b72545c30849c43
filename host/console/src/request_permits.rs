//! Permits for requests, with a limit for each owner: an address, or a viewer. An owner that sends
//! many requests cannot prevent others from using the console.

use std::sync::Arc;

use toolbay_background::{QuotaPortion, SharedQuota};

/// Maximum number of concurrent requests. Further requests are rejected, because a console serves
/// few people.
const MAX_REQUESTS: usize = 64;

/// Maximum number of concurrent requests of one owner.
pub(crate) const MAX_PER_OWNER: usize = MAX_REQUESTS / 4;

/// The permits for requests of one kind.
#[derive(Debug)]
pub(crate) struct RequestPermits(Arc<SharedQuota>);

impl RequestPermits {
    /// Acquires a permit for a request of this owner, if it is known. The permit is released when
    /// it is dropped. Returns `None` if the limit of the owner or the total limit is reached.
    pub(crate) fn try_acquire(&self, owner: Option<String>) -> Option<QuotaPortion> {
        let share = if owner.is_some() {
            MAX_PER_OWNER
        } else {
            MAX_REQUESTS
        };
        let owner = owner.unwrap_or_default();
        self.0.try_reserve_within(&owner, 1, share).ok()
    }
}

impl Default for RequestPermits {
    fn default() -> Self {
        Self(SharedQuota::new(MAX_REQUESTS, MAX_REQUESTS))
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
        assert_eq!(permits.0.total_used(), 0);
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
