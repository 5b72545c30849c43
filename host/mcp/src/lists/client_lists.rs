//! The state of the lists that the client of a session last received, per set of access rights.

use parking_lot::{Mutex, MutexGuard};

use crate::lists::access_rights::CallerRights;
use crate::lists::list_kind::{ListChange, ListKind};
use crate::lists::list_state::CallerView;

/// Maximum number of distinct rights per session that are remembered; the least recently used are
/// dropped. More than a few are not expected, because all tokens of a session have the same owner.
const MAX_REMEMBERED_RIGHTS: usize = 8;

/// List state that the client of a session has.
#[derive(Debug, Default)]
pub(crate) struct ClientLists {
    views: Mutex<Vec<ListsByRights>>,
}

#[derive(Debug)]
struct ListsByRights {
    rights: CallerRights,
    /// The state of each list that the client has, in the order of [`ListKind::ALL`].
    lists: [ReceivedList; ListKind::ALL.len()],
}

/// The client's state of one list.
#[derive(Clone, Copy, Debug)]
struct ReceivedList {
    /// Version number of the lists when the client last received this one.
    version: u64,
    /// Digest of the list that the client received.
    digest: u64,
    /// True if the client has requested the list with these rights.
    was_requested: bool,
}

impl ClientLists {
    /// Replaces all state with the view that a client has when its session begins.
    pub(crate) fn reset(&self, rights: &CallerRights, view: CallerView) {
        *self.views() = vec![ListsByRights::new(rights, view)];
    }

    /// Returns the view that the client last received, or `current` for new rights.
    pub(crate) fn last_view(&self, rights: &CallerRights, current: CallerView) -> CallerView {
        let mut views = self.views();
        let lists = touch_entry(&mut views, rights, current).lists;
        let version = lists.map(|list| list.version).into_iter().min();
        let [tools, prompts, resources, ..] = lists;
        CallerView {
            version: version.unwrap_or(current.version),
            tools: tools.digest,
            prompts: prompts.digest,
            resources: resources.digest,
        }
    }

    /// Records that the client requested a list. `is_whole` is true if the response contained all
    /// of it.
    pub(crate) fn record_listed(
        &self,
        rights: &CallerRights,
        list: ListKind,
        view: CallerView,
        is_whole: bool,
    ) {
        let mut views = self.views();
        let entry = touch_entry(&mut views, rights, view);
        for (received, _) in entry
            .lists
            .iter_mut()
            .zip(ListKind::ALL)
            .filter(|(_, kind)| *kind == list)
        {
            // The first response includes the changes since the session began. Later, a client
            // requests the list after a notification, or at any time.
            if !received.was_requested && is_whole && view.version > received.version {
                *received = ReceivedList::from_view(list, view);
            }
            received.was_requested = true;
        }
    }

    /// Returns the first change between the view that the client last received and `current`.
    /// `notified` is the view that was last reported to the client. It replaces an entry that was
    /// dropped.
    pub(crate) fn next_change(
        &self,
        rights: &CallerRights,
        notified: CallerView,
        current: CallerView,
    ) -> Option<ListChange> {
        let mut views = self.views();
        let lists = &mut touch_entry(&mut views, rights, notified).lists;
        // The client may have requested the list in the meantime, for the first time.
        let newer = lists
            .iter_mut()
            .zip(ListKind::ALL)
            .filter(|(received, _)| current.version > received.version);
        let mut changed = newer.filter_map(|(received, list)| {
            if received.digest == list.digest(current) {
                received.version = current.version;
                return None;
            }
            Some(list.change())
        });
        changed.next()
    }

    /// Records that the client is notified of this change. Returns false if it already was. Called
    /// when the notification has reserved capacity in the outbox.
    pub(crate) fn record_notified(
        &self,
        rights: &CallerRights,
        change: ListChange,
        notified: CallerView,
        current: CallerView,
    ) -> bool {
        let mut views = self.views();
        let lists = touch_entry(&mut views, rights, notified)
            .lists
            .iter_mut()
            .zip(ListKind::ALL);
        let mut is_new = false;
        for (received, list) in lists.filter(|(received, list)| {
            list.change() == change && current.version > received.version
        }) {
            is_new |= received.digest != list.digest(current);
            *received = ReceivedList {
                was_requested: received.was_requested,
                ..ReceivedList::from_view(list, current)
            };
        }
        is_new
    }

    // Held for a few instructions and never across an await.
    fn views(&self) -> MutexGuard<'_, Vec<ListsByRights>> {
        self.views.lock()
    }
}

impl ListsByRights {
    fn new(rights: &CallerRights, view: CallerView) -> Self {
        Self {
            rights: rights.clone(),
            lists: ListKind::ALL.map(|list| ReceivedList::from_view(list, view)),
        }
    }
}

impl ReceivedList {
    fn from_view(list: ListKind, view: CallerView) -> Self {
        Self {
            version: view.version,
            digest: list.digest(view),
            was_requested: false,
        }
    }
}

/// Returns the entry for these rights and marks it as most recently used. Creates it from `initial`
/// if the rights are new.
fn touch_entry<'a>(
    views: &'a mut Vec<ListsByRights>,
    rights: &CallerRights,
    initial: CallerView,
) -> &'a mut ListsByRights {
    let entry = match views.iter().position(|entry| entry.rights == *rights) {
        Some(index) => views.remove(index),
        None => ListsByRights::new(rights, initial),
    };
    if views.len() >= MAX_REMEMBERED_RIGHTS {
        views.remove(0);
    }
    views.push_mut(entry)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lists::access_rights::NamePattern;

    /// Creates a view in which only the tools ever change.
    fn view(listing: u64, tools: u64) -> CallerView {
        CallerView {
            version: listing,
            tools,
            prompts: 1,
            resources: 1,
        }
    }

    impl ClientLists {
        /// Returns all differences, and records them as reported.
        fn differs(
            &self,
            rights: &CallerRights,
            told: CallerView,
            now: CallerView,
        ) -> Vec<ListChange> {
            let mut all = Vec::new();
            while let Some(news) = self.next_change(rights, told, now) {
                assert!(
                    self.record_notified(rights, news, told, now)
                        && !self.record_notified(rights, news, told, now)
                );
                all.push(news);
            }
            all
        }
    }

    fn only(name: &str) -> CallerRights {
        CallerRights::Only(vec![NamePattern::try_from(name.to_owned()).unwrap()])
    }

    #[test]
    fn only_visible_differences_are_reported() {
        let known = ClientLists::default();
        known.reset(&CallerRights::All, view(1, 10));
        assert_eq!(known.last_view(&only("a"), view(1, 5)), view(1, 5));
        assert_eq!(
            known.differs(&CallerRights::All, view(1, 10), view(2, 20)),
            [ListChange::Tools]
        );
        assert_eq!(
            known.differs(&only("a"), view(1, 5), view(2, 5)),
            [],
            "what changed is hidden from it"
        );
        // The list changed and changed back unnoticed.
        assert_eq!(
            known.differs(&CallerRights::All, view(2, 20), view(4, 20)),
            []
        );
        assert_eq!(
            known.differs(&only("a"), view(2, 5), view(5, 6)),
            [ListChange::Tools]
        );
        assert_eq!(
            known.differs(&only("a"), view(5, 6), view(5, 6)),
            [],
            "once"
        );
    }

    #[test]
    fn each_list_has_its_change_notification() {
        let known = ClientLists::default();
        let now = |listing, tools, prompts, resources| CallerView {
            version: listing,
            tools,
            prompts,
            resources,
        };
        known.reset(&CallerRights::All, now(1, 1, 1, 1));
        let mut told = now(1, 1, 1, 1);
        for (next, news) in [
            (now(2, 1, 2, 1), vec![ListChange::Prompts]),
            (now(3, 1, 2, 2), vec![ListChange::Resources]),
            (
                now(4, 2, 3, 3),
                vec![
                    ListChange::Tools,
                    ListChange::Prompts,
                    ListChange::Resources,
                ],
            ),
            (now(5, 2, 3, 3), vec![]),
        ] {
            assert_eq!(known.differs(&CallerRights::All, told, next), news);
            told = next;
        }
    }

    #[test]
    fn the_first_list_contains_the_changes_before_it() {
        let known = ClientLists::default();
        known.reset(&CallerRights::All, view(0, 1));
        known.record_listed(&CallerRights::All, ListKind::Tools, view(2, 2), true);
        assert_eq!(
            known.differs(&CallerRights::All, view(0, 1), view(2, 2)),
            []
        );
        // A repeated request does not replace a notification.
        known.record_listed(&CallerRights::All, ListKind::Tools, view(3, 3), true);
        assert_eq!(
            known.differs(&CallerRights::All, view(2, 2), view(3, 3)),
            [ListChange::Tools]
        );
        // A page is not the whole list.
        known.reset(&CallerRights::All, view(3, 3));
        known.record_listed(&CallerRights::All, ListKind::Tools, view(4, 4), false);
        assert_eq!(
            known.differs(&CallerRights::All, view(3, 3), view(4, 4)),
            [ListChange::Tools]
        );
    }

    #[test]
    fn requesting_one_list_does_not_affect_another() {
        let known = ClientLists::default();
        let before = CallerView {
            version: 1,
            tools: 1,
            prompts: 1,
            resources: 1,
        };
        let after = CallerView {
            version: 2,
            tools: 2,
            prompts: 2,
            resources: 2,
        };
        known.reset(&CallerRights::All, before);
        for list in [ListKind::Prompts, ListKind::Resources] {
            known.record_listed(&CallerRights::All, list, after, true);
        }
        assert_eq!(
            known.last_view(&CallerRights::All, after),
            CallerView {
                prompts: 2,
                resources: 2,
                ..before
            }
        );
        // The templates were not requested.
        assert_eq!(
            known.differs(&CallerRights::All, before, after),
            [ListChange::Tools, ListChange::Resources]
        );
    }

    #[test]
    fn only_the_last_rights_are_remembered() {
        let known = ClientLists::default();
        for n in 0..100 {
            known.last_view(&only(&format!("tool-{n}")), view(1, n));
        }
        assert_eq!(known.views().len(), MAX_REMEMBERED_RIGHTS);
        assert_eq!(
            known.differs(&only("tool-0"), view(1, 0), view(2, 0)),
            [],
            "what it was told stands in"
        );
    }
}
