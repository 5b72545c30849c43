//! What the client of a session knows of the tool list, by the rights with which it looked.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::access::Rights;
use crate::view::View;

/// Different rights of one session that are remembered: those that were used last. More than a few are not to be
/// expected, because every token of a session has the same owner.
const RIGHTS: usize = 8;

/// What the client of a session knows of the tool list.
#[derive(Debug, Default)]
pub(crate) struct Known {
    views: Mutex<Vec<Entry>>,
}

#[derive(Debug)]
struct Entry {
    rights: Rights,
    view: View,
    /// Whether the client has listed tools with these rights.
    listed: bool,
}

impl Known {
    /// Forgets everything but the view that a client has when its session begins.
    pub(crate) fn begin(&self, rights: &Rights, view: View) {
        *self.views() = vec![Entry { rights: rights.clone(), view, listed: false }];
    }

    /// The view that the client last knew; with rights that are new, `now`.
    pub(crate) fn last(&self, rights: &Rights, now: View) -> View {
        let mut views = self.views();
        entry(&mut views, rights, now).view
    }

    /// The client has listed tools; `whole` if the response contained all of them.
    pub(crate) fn listed(&self, rights: &Rights, view: View, whole: bool) {
        let mut views = self.views();
        let entry = entry(&mut views, rights, view);
        // The first response contains the changes since the session began. After that a client lists when it was told
        // to, or whenever it likes.
        if !entry.listed && whole && view.listing > entry.view.listing {
            entry.view = view;
        }
        entry.listed = true;
    }

    /// Whether the client can see a difference between the view that it last knew and `now`, which it knows from here
    /// on. `told` is what it was last told, in case that was forgotten here.
    pub(crate) fn differs(&self, rights: &Rights, told: View, now: View) -> bool {
        let mut views = self.views();
        let entry = entry(&mut views, rights, told);
        // The client may have listed the tools in the meantime, for the first time.
        if now.listing <= entry.view.listing {
            return false;
        }
        let before = std::mem::replace(&mut entry.view, now);
        before.digest != now.digest
    }

    // Held for a few instructions and never across an await.
    fn views(&self) -> MutexGuard<'_, Vec<Entry>> {
        self.views.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The entry for these rights, as the one that was used last; `first` if they are new.
fn entry<'a>(views: &'a mut Vec<Entry>, rights: &Rights, first: View) -> &'a mut Entry {
    let entry = match views.iter().position(|entry| entry.rights == *rights) {
        Some(place) => views.remove(place),
        None => Entry { rights: rights.clone(), view: first, listed: false },
    };
    if views.len() >= RIGHTS {
        views.remove(0);
    }
    views.push_mut(entry)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::Pattern;

    fn view(listing: u64, digest: u64) -> View {
        View { listing, digest }
    }

    fn only(name: &str) -> Rights {
        Rights::Only(vec![Pattern::try_from(name.to_owned()).unwrap()])
    }

    #[test]
    fn only_a_difference_that_the_rights_show_counts() {
        let known = Known::default();
        known.begin(&Rights::All, view(1, 10));
        assert_eq!(known.last(&only("a"), view(1, 5)), view(1, 5));
        assert!(known.differs(&Rights::All, view(1, 10), view(2, 20)));
        assert!(!known.differs(&only("a"), view(1, 5), view(2, 5)), "what changed is hidden from it");
        // There and back again, unseen.
        assert!(!known.differs(&Rights::All, view(2, 20), view(4, 20)));
        assert!(known.differs(&only("a"), view(2, 5), view(5, 6)));
        assert!(!known.differs(&only("a"), view(5, 6), view(5, 6)), "once");
    }

    #[test]
    fn the_first_list_contains_the_changes_before_it() {
        let known = Known::default();
        known.begin(&Rights::All, view(0, 1));
        known.listed(&Rights::All, view(2, 2), true);
        assert!(!known.differs(&Rights::All, view(0, 1), view(2, 2)));
        // Listing again tells a client nothing that it would not be told.
        known.listed(&Rights::All, view(3, 3), true);
        assert!(known.differs(&Rights::All, view(2, 2), view(3, 3)));
        // A page is not the list.
        known.begin(&Rights::All, view(3, 3));
        known.listed(&Rights::All, view(4, 4), false);
        assert!(known.differs(&Rights::All, view(3, 3), view(4, 4)));
    }

    #[test]
    fn only_the_last_rights_are_remembered() {
        let known = Known::default();
        for n in 0..100 {
            known.last(&only(&format!("tool-{n}")), view(1, n));
        }
        assert_eq!(known.views().len(), RIGHTS);
        assert!(!known.differs(&only("tool-0"), view(1, 0), view(2, 0)), "what it was told stands in");
    }
}
