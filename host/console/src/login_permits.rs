//! Permits for requests without a session, with a limit for each address. A client that sends many
//! requests cannot prevent others from logging in.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Maximum number of concurrent requests.
const MAX_LOGIN_REQUESTS: usize = 64;

/// Maximum number of concurrent requests of one address.
const MAX_PER_ADDRESS: usize = MAX_LOGIN_REQUESTS / 4;

/// The permits for requests without a session.
#[derive(Debug, Default)]
pub(crate) struct LoginPermits(Mutex<BTreeMap<String, usize>>);

/// A permit, which is released when it is dropped.
#[derive(Debug)]
pub(crate) struct LoginPermit<'a> {
    permits: &'a LoginPermits,
    address: String,
}

impl LoginPermits {
    /// Acquires a permit for a request from this address, if it is known. Returns `None` if the
    /// limit of the address or the total limit is reached.
    pub(crate) fn try_acquire(&self, address: Option<String>) -> Option<LoginPermit<'_>> {
        let most = if address.is_some() { MAX_PER_ADDRESS } else { MAX_LOGIN_REQUESTS };
        let address = address.unwrap_or_default();
        let mut taken = self.lock_counts();
        let own = taken.get(&address).copied().unwrap_or_default();
        if own >= most || taken.values().sum::<usize>() >= MAX_LOGIN_REQUESTS {
            return None;
        }
        taken.insert(address.clone(), own + 1);
        Some(LoginPermit { permits: self, address })
    }

    // The lock is held for a few comparisons and never across an await.
    fn lock_counts(&self) -> MutexGuard<'_, BTreeMap<String, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for LoginPermit<'_> {
    fn drop(&mut self) {
        let mut taken = self.permits.lock_counts();
        if let Some(own) = taken.get_mut(&self.address) {
            *own -= 1;
            if *own == 0 {
                taken.remove(&self.address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_address_takes_all_places() {
        let door = LoginPermits::default();
        let of = |number: usize| door.try_acquire(Some(format!("192.0.2.{number}")));
        let hostile: Vec<_> = (0..MAX_LOGIN_REQUESTS).map_while(|_| of(1)).collect();
        assert_eq!(hostile.len(), MAX_PER_ADDRESS);
        let others: Vec<_> = (0..MAX_LOGIN_REQUESTS).map_while(|number| of(2 + number / MAX_PER_ADDRESS)).collect();
        assert_eq!(others.len(), MAX_LOGIN_REQUESTS - MAX_PER_ADDRESS);
        assert!(of(9).is_none() && door.try_acquire(None).is_none());
        drop(hostile);
        assert!(of(9).is_some());
        drop(others);
        assert!(door.lock_counts().is_empty());
        // Requests without a known address have no separate limit.
        assert_eq!(
            (0..2 * MAX_LOGIN_REQUESTS).map_while(|_| door.try_acquire(None)).collect::<Vec<_>>().len(),
            MAX_LOGIN_REQUESTS
        );
    }
}
