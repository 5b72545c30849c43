//! Cached digests of the lists, one for each set of caller rights.

use std::collections::HashMap;

use parking_lot::{Mutex, MutexGuard};
use toolbay_catalog::Snapshot;
use toolbay_mcp::{CallerRights, CallerView};

/// Maximum number of different rights with a cached digest.
const MAX_CACHED_RIGHTS: usize = 256;

/// Digests of the current lists. Many streams wait for their changes, and most of them share their
/// rights with others.
#[derive(Debug, Default)]
pub(crate) struct ViewDigests {
    current: Mutex<CurrentDigests>,
}

#[derive(Debug, Default)]
struct CurrentDigests {
    listing: u64,
    views: HashMap<CallerRights, CallerView>,
}

impl ViewDigests {
    /// Returns the digests of the lists of `snapshot`, as visible with these rights.
    pub(crate) fn digests(&self, snapshot: &Snapshot, rights: &CallerRights) -> CallerView {
        let listing = snapshot.list_generation;
        let cached = {
            let current = self.lock_current();
            current
                .views
                .get(rights)
                .copied()
                .filter(|_| current.listing == listing)
        };
        if let Some(known) = cached {
            return known;
        }
        // Computed without the lock, so that other callers do not wait for it.
        let visible = |name: &str| rights.allow(name);
        let view = CallerView {
            version: listing,
            tools: snapshot.digest_of_tools(visible),
            prompts: snapshot.digest_of_prompts(visible),
            resources: snapshot.digest_of_resources(visible),
        };
        self.store(rights, view);
        view
    }

    fn store(&self, rights: &CallerRights, view: CallerView) {
        let mut current = self.lock_current();
        if view.version < current.listing {
            return;
        }
        if view.version > current.listing || current.views.len() >= MAX_CACHED_RIGHTS {
            *current = CurrentDigests {
                listing: view.version,
                views: HashMap::new(),
            };
        }
        current.views.insert(rights.clone(), view);
    }

    // Held for a few instructions and never across an await.
    fn lock_current(&self) -> MutexGuard<'_, CurrentDigests> {
        self.current.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_belongs_to_one_generation_of_the_lists() {
        let views = ViewDigests::default();
        let digests_of = |listing| {
            views.digests(
                &Snapshot {
                    list_generation: listing,
                    ..Snapshot::default()
                },
                &CallerRights::All,
            )
        };
        // A digest that is only returned if it was cached.
        let wrong = CallerView {
            version: 7,
            tools: 1,
            prompts: 2,
            resources: 3,
        };
        views.store(&CallerRights::All, wrong);
        assert_eq!(digests_of(7), wrong);
        let empty = Snapshot::default();
        let right = |listing| CallerView {
            version: listing,
            tools: empty.digest_of_tools(|_| true),
            prompts: empty.digest_of_prompts(|_| true),
            resources: empty.digest_of_resources(|_| true),
        };
        assert_eq!(digests_of(6), right(6), "an older list");
        assert_eq!(digests_of(7), wrong, "which does not replace the newer");
        assert_eq!(digests_of(8), right(8));
        for n in 0..10 * MAX_CACHED_RIGHTS {
            let pattern = format!("tool-{n}").try_into().unwrap();
            views.digests(
                &Snapshot {
                    list_generation: 8,
                    ..Snapshot::default()
                },
                &CallerRights::Only(vec![pattern]),
            );
        }
        assert!(views.lock_current().views.len() <= MAX_CACHED_RIGHTS);
    }
}
