//! What the client of a session knows of the lists, by the rights with which it looked.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::access::CallerRights;
use crate::list::{ListChange, ListKind};
use crate::view::CallerView;

/// Different rights of one session that are remembered: those that were used last. More than a few are not to be
/// expected, because every token of a session has the same owner.
const RIGHTS: usize = 8;

/// What the client of a session knows of the lists.
#[derive(Debug, Default)]
pub(crate) struct KnownLists {
    views: Mutex<Vec<KnownEntry>>,
}

#[derive(Debug)]
struct KnownEntry {
    rights: CallerRights,
    /// What the client knows of each list, in the order of [`ListKind::ALL`].
    lists: [SeenList; ListKind::ALL.len()],
}

/// What a client knows of one list.
#[derive(Clone, Copy, Debug)]
struct SeenList {
    /// The number of the lists when it looked.
    listing: u64,
    /// The digest of what it saw.
    digest: u64,
    /// Whether the client has asked for the list with these rights.
    listed: bool,
}

impl KnownLists {
    /// Forgets everything but the view that a client has when its session begins.
    pub(crate) fn begin(&self, rights: &CallerRights, view: CallerView) {
        *self.views() = vec![KnownEntry::new(rights, view)];
    }

    /// What the client last knew; with rights that are new, `now`.
    pub(crate) fn last(&self, rights: &CallerRights, now: CallerView) -> CallerView {
        let mut views = self.views();
        let lists = entry(&mut views, rights, now).lists;
        let listing = lists.map(|seen| seen.listing).into_iter().min();
        let [tools, prompts, resources, ..] = lists;
        CallerView {
            listing: listing.unwrap_or(now.listing),
            tools: tools.digest,
            prompts: prompts.digest,
            resources: resources.digest,
        }
    }

    /// The client has asked for a list; `whole` if the response contained all of it.
    pub(crate) fn listed(&self, rights: &CallerRights, list: ListKind, view: CallerView, whole: bool) {
        let mut views = self.views();
        let entry = entry(&mut views, rights, view);
        for (seen, _) in entry.lists.iter_mut().zip(ListKind::ALL).filter(|(_, known)| *known == list) {
            // The first response contains the changes since the session began. After that a client lists when it was told
            // to, or whenever it likes.
            if !seen.listed && whole && view.listing > seen.listing {
                *seen = SeenList::of(list, view);
            }
            seen.listed = true;
        }
    }

    /// Something that is different now from what the client last knew, as far as it can see it. `told` is what it was last
    /// told, in case that was forgotten here.
    pub(crate) fn news(&self, rights: &CallerRights, told: CallerView, now: CallerView) -> Option<ListChange> {
        let mut views = self.views();
        let lists = &mut entry(&mut views, rights, told).lists;
        // The client may have asked for the list in the meantime, for the first time.
        let newer = lists.iter_mut().zip(ListKind::ALL).filter(|(seen, _)| now.listing > seen.listing);
        let mut changed = newer.filter_map(|(seen, list)| {
            if seen.digest == list.digest(now) {
                seen.listing = now.listing;
                return None;
            }
            Some(list.news())
        });
        changed.next()
    }

    /// From here on the client knows of this; false if it did already. Called when the notification has its place in the
    /// outbox.
    pub(crate) fn tell(&self, rights: &CallerRights, news: ListChange, told: CallerView, now: CallerView) -> bool {
        let mut views = self.views();
        let lists = entry(&mut views, rights, told).lists.iter_mut().zip(ListKind::ALL);
        let mut is_new = false;
        for (seen, list) in lists.filter(|(seen, list)| list.news() == news && now.listing > seen.listing) {
            is_new |= seen.digest != list.digest(now);
            *seen = SeenList { listed: seen.listed, ..SeenList::of(list, now) };
        }
        is_new
    }

    // Held for a few instructions and never across an await.
    fn views(&self) -> MutexGuard<'_, Vec<KnownEntry>> {
        self.views.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KnownEntry {
    fn new(rights: &CallerRights, view: CallerView) -> Self {
        Self { rights: rights.clone(), lists: ListKind::ALL.map(|list| SeenList::of(list, view)) }
    }
}

impl SeenList {
    fn of(list: ListKind, view: CallerView) -> Self {
        Self { listing: view.listing, digest: list.digest(view), listed: false }
    }
}

/// The entry for these rights, as the one that was used last; `first` if they are new.
fn entry<'a>(views: &'a mut Vec<KnownEntry>, rights: &CallerRights, first: CallerView) -> &'a mut KnownEntry {
    let entry = match views.iter().position(|entry| entry.rights == *rights) {
        Some(place) => views.remove(place),
        None => KnownEntry::new(rights, first),
    };
    if views.len() >= RIGHTS {
        views.remove(0);
    }
    views.push_mut(entry)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::NamePattern;

    /// Lists with this number, of which only the tools ever change.
    fn view(listing: u64, tools: u64) -> CallerView {
        CallerView { listing, tools, prompts: 1, resources: 1 }
    }

    impl KnownLists {
        /// Everything that is different now, which the client then knows.
        fn differs(&self, rights: &CallerRights, told: CallerView, now: CallerView) -> Vec<ListChange> {
            let mut all = Vec::new();
            while let Some(news) = self.news(rights, told, now) {
                assert!(self.tell(rights, news, told, now) && !self.tell(rights, news, told, now));
                all.push(news);
            }
            all
        }
    }

    fn only(name: &str) -> CallerRights {
        CallerRights::Only(vec![NamePattern::try_from(name.to_owned()).unwrap()])
    }

    #[test]
    fn only_a_difference_that_the_rights_show_counts() {
        let known = KnownLists::default();
        known.begin(&CallerRights::All, view(1, 10));
        assert_eq!(known.last(&only("a"), view(1, 5)), view(1, 5));
        assert_eq!(known.differs(&CallerRights::All, view(1, 10), view(2, 20)), [ListChange::Tools]);
        assert_eq!(known.differs(&only("a"), view(1, 5), view(2, 5)), [], "what changed is hidden from it");
        // There and back again, unseen.
        assert_eq!(known.differs(&CallerRights::All, view(2, 20), view(4, 20)), []);
        assert_eq!(known.differs(&only("a"), view(2, 5), view(5, 6)), [ListChange::Tools]);
        assert_eq!(known.differs(&only("a"), view(5, 6), view(5, 6)), [], "once");
    }

    #[test]
    fn each_list_has_its_news() {
        let known = KnownLists::default();
        let now = |listing, tools, prompts, resources| CallerView { listing, tools, prompts, resources };
        known.begin(&CallerRights::All, now(1, 1, 1, 1));
        let mut told = now(1, 1, 1, 1);
        for (next, news) in [
            (now(2, 1, 2, 1), vec![ListChange::Prompts]),
            (now(3, 1, 2, 2), vec![ListChange::Resources]),
            (now(4, 2, 3, 3), vec![ListChange::Tools, ListChange::Prompts, ListChange::Resources]),
            (now(5, 2, 3, 3), vec![]),
        ] {
            assert_eq!(known.differs(&CallerRights::All, told, next), news);
            told = next;
        }
    }

    #[test]
    fn the_first_list_contains_the_changes_before_it() {
        let known = KnownLists::default();
        known.begin(&CallerRights::All, view(0, 1));
        known.listed(&CallerRights::All, ListKind::Tools, view(2, 2), true);
        assert_eq!(known.differs(&CallerRights::All, view(0, 1), view(2, 2)), []);
        // Listing again tells a client nothing that it would not be told.
        known.listed(&CallerRights::All, ListKind::Tools, view(3, 3), true);
        assert_eq!(known.differs(&CallerRights::All, view(2, 2), view(3, 3)), [ListChange::Tools]);
        // A page is not the list.
        known.begin(&CallerRights::All, view(3, 3));
        known.listed(&CallerRights::All, ListKind::Tools, view(4, 4), false);
        assert_eq!(known.differs(&CallerRights::All, view(3, 3), view(4, 4)), [ListChange::Tools]);
    }

    #[test]
    fn one_list_says_nothing_of_another() {
        let known = KnownLists::default();
        let before = CallerView { listing: 1, tools: 1, prompts: 1, resources: 1 };
        let after = CallerView { listing: 2, tools: 2, prompts: 2, resources: 2 };
        known.begin(&CallerRights::All, before);
        for list in [ListKind::Prompts, ListKind::Resources] {
            known.listed(&CallerRights::All, list, after, true);
        }
        assert_eq!(known.last(&CallerRights::All, after), CallerView { prompts: 2, resources: 2, ..before });
        // The templates were not asked for.
        assert_eq!(known.differs(&CallerRights::All, before, after), [ListChange::Tools, ListChange::Resources]);
    }

    #[test]
    fn only_the_last_rights_are_remembered() {
        let known = KnownLists::default();
        for n in 0..100 {
            known.last(&only(&format!("tool-{n}")), view(1, n));
        }
        assert_eq!(known.views().len(), RIGHTS);
        assert_eq!(known.differs(&only("tool-0"), view(1, 0), view(2, 0)), [], "what it was told stands in");
    }
}
