//! The tool list as callers with different rights see it: one digest for each, computed once.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use toolbay_catalog::Snapshot;
use toolbay_mcp::{Rights, View};

/// Different rights whose digest is remembered.
const RIGHTS: usize = 256;

/// The digests of the tool list that is current. Many streams wait for its changes, and few of them have rights of their
/// own.
#[derive(Debug, Default)]
pub(crate) struct Views {
    current: Mutex<Current>,
}

#[derive(Debug, Default)]
struct Current {
    listing: u64,
    digests: HashMap<Rights, u64>,
}

impl Views {
    /// The tool list of `snapshot` as a caller with these rights sees it.
    pub(crate) fn of(&self, snapshot: &Snapshot, rights: &Rights) -> View {
        let listing = snapshot.listing;
        let known = {
            let current = self.current();
            current.digests.get(rights).copied().filter(|_| current.listing == listing)
        };
        // Not under the lock: others need not wait for it.
        let digest = known.unwrap_or_else(|| snapshot.digest(|name| rights.allow(name)));
        if known.is_none() {
            self.remember(listing, rights, digest);
        }
        View { listing, digest }
    }

    fn remember(&self, listing: u64, rights: &Rights, digest: u64) {
        let mut current = self.current();
        if listing < current.listing {
            return;
        }
        if listing > current.listing || current.digests.len() >= RIGHTS {
            *current = Current { listing, digests: HashMap::new() };
        }
        current.digests.insert(rights.clone(), digest);
    }

    // Held for a few instructions and never across an await.
    fn current(&self) -> MutexGuard<'_, Current> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_of_its_list_and_not_of_another() {
        let views = Views::default();
        let of = |listing| views.of(&Snapshot { listing, ..Snapshot::default() }, &Rights::All);
        // What a wrong digest would be returned for.
        views.remember(7, &Rights::All, 1);
        assert_eq!(of(7), View { listing: 7, digest: 1 });
        let empty = Snapshot::default().digest(|_| true);
        assert_eq!(of(6), View { listing: 6, digest: empty }, "an older list");
        assert_eq!(of(7), View { listing: 7, digest: 1 }, "which does not replace the newer");
        assert_eq!(of(8), View { listing: 8, digest: empty });
        for n in 0..10 * RIGHTS {
            let pattern = format!("tool-{n}").try_into().unwrap();
            views.of(&Snapshot { listing: 8, ..Snapshot::default() }, &Rights::Only(vec![pattern]));
        }
        assert!(views.current().digests.len() <= RIGHTS);
    }
}
