//! Permits for requests without a session, with a limit for each address. A client that sends many
//! requests cannot prevent others from logging in.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Maximum number of concurrent requests.
const PLACES: usize = 64;

/// Maximum number of concurrent requests of one address.
const EACH: usize = PLACES / 4;

/// The permits for requests without a session.
#[derive(Debug, Default)]
pub(crate) struct LoginPermits(Mutex<BTreeMap<String, usize>>);

/// A permit, which is released when it is dropped.
#[derive(Debug)]
pub(crate) struct DoorPlace<'a> {
    door: &'a LoginPermits,
    address: String,
}

impl LoginPermits {
    /// Acquires a permit for a request from this address, if it is known. Returns `None` if the
    /// limit of the address or the total limit is reached.
    pub(crate) fn enter(&self, address: Option<String>) -> Option<DoorPlace<'_>> {
        let most = if address.is_some() { EACH } else { PLACES };
        let address = address.unwrap_or_default();
        let mut taken = self.taken();
        let own = taken.get(&address).copied().unwrap_or_default();
        if own >= most || taken.values().sum::<usize>() >= PLACES {
            return None;
        }
        taken.insert(address.clone(), own + 1);
        Some(DoorPlace { door: self, address })
    }

    // The lock is held for a few comparisons and never across an await.
    fn taken(&self) -> MutexGuard<'_, BTreeMap<String, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for DoorPlace<'_> {
    fn drop(&mut self) {
        let mut taken = self.door.taken();
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
        let of = |number: usize| door.enter(Some(format!("192.0.2.{number}")));
        let hostile: Vec<_> = (0..PLACES).map_while(|_| of(1)).collect();
        assert_eq!(hostile.len(), EACH);
        let others: Vec<_> = (0..PLACES).map_while(|number| of(2 + number / EACH)).collect();
        assert_eq!(others.len(), PLACES - EACH);
        assert!(of(9).is_none() && door.enter(None).is_none());
        drop(hostile);
        assert!(of(9).is_some());
        drop(others);
        assert!(door.taken().is_empty());
        // Requests without a known address have no separate limit.
        assert_eq!((0..2 * PLACES).map_while(|_| door.enter(None)).collect::<Vec<_>>().len(), PLACES);
    }
}
