//! What the client of a session knows of the lists, by the rights with which it looked.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::access::Rights;
use crate::list::{List, News};
use crate::view::View;

/// Different rights of one session that are remembered: those that were used last. More than a few are not to be
/// expected, because every token of a session has the same owner.
const RIGHTS: usize = 8;

/// What the client of a session knows of the lists.
#[derive(Debug, Default)]
pub(crate) struct Known {
    views: Mutex<Vec<Entry>>,
}

#[derive(Debug)]
struct Entry {
    rights: Rights,
    /// What the client knows of each list, in the order of [`List::ALL`].
    lists: [Seen; List::ALL.len()],
}

/// What a client knows of one list.
#[derive(Clone, Copy, Debug)]
struct Seen {
    /// The number of the lists when it looked.
    listing: u64,
    /// The digest of what it saw.
    digest: u64,
    /// Whether the client has asked for the list with these rights.
    listed: bool,
}

impl Known {
    /// Forgets everything but the view that a client has when its session begins.
    pub(crate) fn begin(&self, rights: &Rights, view: View) {
        *self.views() = vec![Entry::new(rights, view)];
    }

    /// What the client last knew; with rights that are new, `now`.
    pub(crate) fn last(&self, rights: &Rights, now: View) -> View {
        let mut views = self.views();
        let lists = entry(&mut views, rights, now).lists;
        let listing = lists.map(|seen| seen.listing).into_iter().min();
        let [tools, prompts, resources, ..] = lists;
        View {
            listing: listing.unwrap_or(now.listing),
            tools: tools.digest,
            prompts: prompts.digest,
            resources: resources.digest,
        }
    }

    /// The client has asked for a list; `whole` if the response contained all of it.
    pub(crate) fn listed(&self, rights: &Rights, list: List, view: View, whole: bool) {
        let mut views = self.views();
        let entry = entry(&mut views, rights, view);
        for (seen, _) in entry.lists.iter_mut().zip(List::ALL).filter(|(_, known)| *known == list) {
            // The first response contains the changes since the session began. After that a client lists when it was told
            // to, or whenever it likes.
            if !seen.listed && whole && view.listing > seen.listing {
                *seen = Seen::of(list, view);
            }
            seen.listed = true;
        }
    }

    /// Something that is different now from what the client last knew, as far as it can see it. `told` is what it was last
    /// told, in case that was forgotten here.
    pub(crate) fn news(&self, rights: &Rights, told: View, now: View) -> Option<News> {
        let mut views = self.views();
        let lists = &mut entry(&mut views, rights, told).lists;
        // The client may have asked for the list in the meantime, for the first time.
        let newer = lists.iter_mut().zip(List::ALL).filter(|(seen, _)| now.listing > seen.listing);
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
    pub(crate) fn tell(&self, rights: &Rights, news: News, told: View, now: View) -> bool {
        let mut views = self.views();
        let lists = entry(&mut views, rights, told).lists.iter_mut().zip(List::ALL);
        let mut is_new = false;
        for (seen, list) in lists.filter(|(seen, list)| list.news() == news && now.listing > seen.listing) {
            is_new |= seen.digest != list.digest(now);
            *seen = Seen { listed: seen.listed, ..Seen::of(list, now) };
        }
        is_new
    }

    // Held for a few instructions and never across an await.
    fn views(&self) -> MutexGuard<'_, Vec<Entry>> {
        self.views.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entry {
    fn new(rights: &Rights, view: View) -> Self {
        Self { rights: rights.clone(), lists: List::ALL.map(|list| Seen::of(list, view)) }
    }
}

impl Seen {
    fn of(list: List, view: View) -> Self {
        Self { listing: view.listing, digest: list.digest(view), listed: false }
    }
}

/// The entry for these rights, as the one that was used last; `first` if they are new.
fn entry<'a>(views: &'a mut Vec<Entry>, rights: &Rights, first: View) -> &'a mut Entry {
    let entry = match views.iter().position(|entry| entry.rights == *rights) {
        Some(place) => views.remove(place),
        None => Entry::new(rights, first),
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

    /// Lists with this number, of which only the tools ever change.
    fn view(listing: u64, tools: u64) -> View {
        View { listing, tools, prompts: 1, resources: 1 }
    }

    impl Known {
        /// Everything that is different now, which the client then knows.
        fn differs(&self, rights: &Rights, told: View, now: View) -> Vec<News> {
            let mut all = Vec::new();
            while let Some(news) = self.news(rights, told, now) {
                assert!(self.tell(rights, news, told, now) && !self.tell(rights, news, told, now));
                all.push(news);
            }
            all
        }
    }

    fn only(name: &str) -> Rights {
        Rights::Only(vec![Pattern::try_from(name.to_owned()).unwrap()])
    }

    #[test]
    fn only_a_difference_that_the_rights_show_counts() {
        let known = Known::default();
        known.begin(&Rights::All, view(1, 10));
        assert_eq!(known.last(&only("a"), view(1, 5)), view(1, 5));
        assert_eq!(known.differs(&Rights::All, view(1, 10), view(2, 20)), [News::Tools]);
        assert_eq!(known.differs(&only("a"), view(1, 5), view(2, 5)), [], "what changed is hidden from it");
        // There and back again, unseen.
        assert_eq!(known.differs(&Rights::All, view(2, 20), view(4, 20)), []);
        assert_eq!(known.differs(&only("a"), view(2, 5), view(5, 6)), [News::Tools]);
        assert_eq!(known.differs(&only("a"), view(5, 6), view(5, 6)), [], "once");
    }

    #[test]
    fn each_list_has_its_news() {
        let known = Known::default();
        let now = |listing, tools, prompts, resources| View { listing, tools, prompts, resources };
        known.begin(&Rights::All, now(1, 1, 1, 1));
        let mut told = now(1, 1, 1, 1);
        for (next, news) in [
            (now(2, 1, 2, 1), vec![News::Prompts]),
            (now(3, 1, 2, 2), vec![News::Resources]),
            (now(4, 2, 3, 3), vec![News::Tools, News::Prompts, News::Resources]),
            (now(5, 2, 3, 3), vec![]),
        ] {
            assert_eq!(known.differs(&Rights::All, told, next), news);
            told = next;
        }
    }

    #[test]
    fn the_first_list_contains_the_changes_before_it() {
        let known = Known::default();
        known.begin(&Rights::All, view(0, 1));
        known.listed(&Rights::All, List::Tools, view(2, 2), true);
        assert_eq!(known.differs(&Rights::All, view(0, 1), view(2, 2)), []);
        // Listing again tells a client nothing that it would not be told.
        known.listed(&Rights::All, List::Tools, view(3, 3), true);
        assert_eq!(known.differs(&Rights::All, view(2, 2), view(3, 3)), [News::Tools]);
        // A page is not the list.
        known.begin(&Rights::All, view(3, 3));
        known.listed(&Rights::All, List::Tools, view(4, 4), false);
        assert_eq!(known.differs(&Rights::All, view(3, 3), view(4, 4)), [News::Tools]);
    }

    #[test]
    fn one_list_says_nothing_of_another() {
        let known = Known::default();
        let before = View { listing: 1, tools: 1, prompts: 1, resources: 1 };
        let after = View { listing: 2, tools: 2, prompts: 2, resources: 2 };
        known.begin(&Rights::All, before);
        for list in [List::Prompts, List::Resources] {
            known.listed(&Rights::All, list, after, true);
        }
        assert_eq!(known.last(&Rights::All, after), View { prompts: 2, resources: 2, ..before });
        // The templates were not asked for.
        assert_eq!(known.differs(&Rights::All, before, after), [News::Tools, News::Resources]);
    }

    #[test]
    fn only_the_last_rights_are_remembered() {
        let known = Known::default();
        for n in 0..100 {
            known.last(&only(&format!("tool-{n}")), view(1, n));
        }
        assert_eq!(known.views().len(), RIGHTS);
        assert_eq!(known.differs(&only("tool-0"), view(1, 0), view(2, 0)), [], "what it was told stands in");
    }
}
