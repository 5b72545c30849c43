//! The bookkeeping of a ledger, without I/O.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::walk::{Found, Full, Holds, Identity};

/// Duration for which a scan is trusted. Other programs can change the directory as well.
const TRUSTED: Duration = Duration::from_mins(1);

/// Minimum duration for which a scan is trusted, as a multiple of the duration of the scan:
/// scanning takes at most a hundredth of the time.
const SHARE: u32 = 100;

/// Like [`SHARE`], for a full directory, because another program may have freed space.
const SHARE_IF_FULL: u32 = 10;

/// The usage and the open files of a directory.
#[derive(Debug, Default)]
pub(super) struct Books {
    /// The usage of the directory, including open files without a name.
    holds: Holds,
    /// The reason why the directory counts as full regardless of changes, until the next scan.
    full: Option<Full>,
    /// The largest bounds of any of its mounts.
    most: Holds,
    /// The last scan.
    counted: Option<Counted>,
    /// Files that calls of this server have open.
    open: HashMap<Identity, Open>,
}

/// The time and the duration of a scan.
#[derive(Clone, Copy, Debug)]
struct Counted {
    at: Instant,
    took: Duration,
}

/// An open file.
#[derive(Debug, Default)]
struct Open {
    handles: usize,
    /// The length of the file if it has no name. It takes space until the last handle is closed.
    nameless: Option<u64>,
}

impl Books {
    /// Returns whether the directory must be scanned before it is changed.
    pub(super) fn is_stale(&self, now: Instant) -> bool {
        self.counted.is_none_or(|counted| counted.older_than(TRUSTED.max(counted.took.saturating_mul(SHARE)), now))
    }

    /// Returns whether another scan is worthwhile because the directory seems to be full.
    pub(super) fn may_have_room(&self, now: Instant) -> bool {
        self.counted.is_some_and(|counted| counted.older_than(counted.took.saturating_mul(SHARE_IF_FULL), now))
    }

    /// Records the result of a scan.
    pub(super) fn count(&mut self, found: Found, at: Instant, took: Duration) {
        let (found, full) = match found {
            Found::All(holds) => (holds, None),
            Found::Full(full) => (Holds::default(), Some(full)),
        };
        let nameless = self.open.values().filter_map(|open| open.nameless).fold(0, u64::saturating_add);
        self.holds = Holds { bytes: found.bytes.saturating_add(nameless), ..found };
        self.full = full;
        self.counted = Some(Counted { at, took });
    }

    /// Returns the usage of the directory, or the maximum if it counts as full.
    pub(super) fn holds(&self) -> Holds {
        if self.full.is_some() { Holds { bytes: u64::MAX, entries: u64::MAX } } else { self.holds }
    }

    /// Returns the reason why the last scan stopped early.
    pub(super) fn full(&self) -> Option<Full> {
        self.full
    }

    /// Registers the bounds of a mount. If they exceed the bounds at the last scan, a directory
    /// that was full may have space.
    pub(super) fn bound(&mut self, bytes: u64, entries: u64) {
        let most = Holds { bytes: self.most.bytes.max(bytes), entries: self.most.entries.max(entries) };
        if most != self.most && self.full == Some(Full::Quota) {
            self.counted = None;
        }
        self.most = most;
    }

    /// Returns the largest bounds of any of its mounts.
    pub(super) fn most(&self) -> Holds {
        self.most
    }

    /// Adds created entries, or subtracts removed ones.
    pub(super) fn entries(&mut self, change: i64) {
        self.holds.entries = self.holds.entries.saturating_add_signed(change);
    }

    /// Records that the length of a file changed.
    pub(super) fn length(&mut self, file: Identity, before: u64, after: u64) {
        let change = |bytes: u64| bytes.saturating_add(after).saturating_sub(before);
        self.holds.bytes = change(self.holds.bytes);
        if let Some(nameless) = self.open.get_mut(&file).and_then(|open| open.nameless.as_mut()) {
            *nameless = change(*nameless);
        }
    }

    /// Records that a file lost its last name.
    pub(super) fn nameless(&mut self, file: Identity, length: u64) {
        match self.open.get_mut(&file) {
            Some(open) if open.nameless.is_none() => open.nameless = Some(length),
            // The file was opened after it lost its name, and was added then.
            _ => self.holds.bytes = self.holds.bytes.saturating_sub(length),
        }
    }

    /// Records a new handle of a file. `nameless` is its length if it has no name.
    pub(super) fn opened(&mut self, file: Identity, nameless: Option<u64>) {
        let open = self.open.entry(file).or_default();
        open.handles += 1;
        if let (Some(length), None) = (nameless, open.nameless) {
            open.nameless = Some(length);
            self.holds.bytes = self.holds.bytes.saturating_add(length);
        }
    }

    /// Records that a handle was closed.
    pub(super) fn closed(&mut self, file: Identity) {
        let Some(open) = self.open.get_mut(&file) else { return };
        open.handles -= 1;
        if open.handles == 0 {
            let freed = open.nameless.unwrap_or_default();
            self.open.remove(&file);
            self.holds.bytes = self.holds.bytes.saturating_sub(freed);
        }
    }
}

impl Counted {
    fn older_than(self, age: Duration, now: Instant) -> bool {
        now.saturating_duration_since(self.at) >= age
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: Identity = (1, 2);

    fn counted(bytes: u64, entries: u64) -> Books {
        let mut books = Books::default();
        books.count(Found::All(Holds { bytes, entries }), Instant::now(), Duration::ZERO);
        books
    }

    #[test]
    fn a_file_without_a_name_takes_space_until_it_is_closed() {
        let mut books = counted(10, 1);
        books.opened(FILE, None);
        books.opened(FILE, None);
        books.nameless(FILE, 10);
        books.entries(-1);
        books.length(FILE, 10, 30);
        assert_eq!(books.holds(), Holds { bytes: 30, entries: 0 });
        // A scan does not find it.
        books.count(Found::All(Holds { bytes: 5, entries: 1 }), Instant::now(), Duration::ZERO);
        assert_eq!(books.holds().bytes, 35);
        books.closed(FILE);
        assert_eq!(books.holds().bytes, 35);
        books.closed(FILE);
        assert_eq!(books.holds().bytes, 5);
        books.closed(FILE);
        assert_eq!(books.holds().bytes, 5, "closed twice");
    }

    #[test]
    fn a_file_that_is_not_open_is_gone_with_its_name() {
        let mut books = counted(10, 1);
        books.nameless(FILE, 10);
        assert_eq!(books.holds().bytes, 0);
        books.nameless(FILE, 10);
        assert_eq!(books.holds().bytes, 0, "never below nothing");
    }

    #[test]
    fn a_file_that_is_opened_while_it_loses_its_name_counts_once() {
        let mut books = counted(10, 1);
        books.opened(FILE, Some(10));
        books.nameless(FILE, 10);
        assert_eq!(books.holds().bytes, 10);
        books.closed(FILE);
        assert_eq!(books.holds().bytes, 0);
    }

    #[test]
    fn a_count_is_trusted_for_a_while() {
        let mut books = Books::default();
        let now = Instant::now();
        assert!(books.is_stale(now), "never counted");
        assert!(!books.may_have_room(now));
        books.count(Found::All(Holds::default()), now, Duration::from_millis(1));
        let after = |millis| now + Duration::from_millis(millis);
        assert!(!books.is_stale(after(59_999)) && books.is_stale(after(60_000)));
        assert!(!books.may_have_room(after(9)) && books.may_have_room(after(10)));
        // Scanning a large directory takes long, so it happens less often.
        books.count(Found::All(Holds::default()), now, Duration::from_secs(2));
        assert!(!books.is_stale(after(199_999)) && books.is_stale(after(200_000)));
        assert!(!books.may_have_room(after(19_999)) && books.may_have_room(after(20_000)));
    }

    #[test]
    fn a_folder_that_was_not_counted_to_its_end_is_full_until_it_is() {
        let mut books = Books::default();
        books.bound(10, 20);
        books.bound(30, 5);
        assert_eq!(books.most(), Holds { bytes: 30, entries: 20 });
        let now = Instant::now();
        books.count(Found::Full(Full::Quota), now, Duration::ZERO);
        // However many entries are removed.
        books.entries(-1_000_000);
        books.length(FILE, u64::MAX, 0);
        assert_eq!(books.holds(), Holds { bytes: u64::MAX, entries: u64::MAX });
        books.bound(30, 20);
        assert!(!books.is_stale(now));
        books.bound(31, 0);
        assert!(books.is_stale(now), "there may be room for this mount");
        books.count(Found::All(Holds { bytes: 1, entries: 2 }), now, Duration::ZERO);
        assert_eq!((books.holds(), books.full()), (Holds { bytes: 1, entries: 2 }, None));
        books.bound(32, 0);
        assert!(!books.is_stale(now), "it was counted to its end");
    }
}
