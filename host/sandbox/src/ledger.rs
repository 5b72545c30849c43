//! What folders with a quota hold: counted once, and kept while calls of this server change them.
//!
//! A folder has one ledger, however many calls, plugins and mounts use it. Whoever changes the folder holds the
//! [`Change`] of its ledger while it looks at what is there, changes it and notes the difference. So two calls never
//! use the same room. Waiting for it takes no thread; the work itself runs to its end even if the call is gone, because
//! what it changes must be noted.

mod books;
mod walk;

use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use rustix::fs::{FileType, fstat};
use rustix::io::Errno;
use tokio::sync::{OwnedMutexGuard, Semaphore};
use toolbay_model::Limit;

use self::books::Books;
use self::walk::Full;
#[cfg(test)]
pub(crate) use self::walk::count;
pub(crate) use self::walk::{Found, Holds, Identity, identity, length};

/// Ledgers that are kept although no call uses them, and no plugin holds them: those of callers' folders. Each has a
/// descriptor.
const RECENT: usize = 64;

/// Folders that are counted at once. Each takes a thread, and up to 32 MiB.
const COUNTING: usize = 2;

/// How often counting begins again because a folder was moved meanwhile.
const TRIES: usize = 3;

/// The ledgers of a server.
#[derive(Debug)]
pub(crate) struct Ledgers {
    known: Mutex<HashMap<Identity, Weak<Ledger>>>,
    recent: Mutex<VecDeque<Arc<Ledger>>>,
    counting: Arc<Semaphore>,
}

/// What a folder holds.
#[derive(Debug)]
pub(crate) struct Ledger {
    /// The open folder: as long as it is, its identity is no other's.
    folder: Arc<File>,
    changing: Arc<tokio::sync::Mutex<()>>,
    books: Mutex<Books>,
    counting: Arc<Semaphore>,
}

/// The sole right to change a folder through this server.
#[derive(Debug)]
pub(crate) struct Change {
    ledger: Arc<Ledger>,
    _alone: OwnedMutexGuard<()>,
}

/// A file in a folder with a ledger that a call has open.
#[derive(Debug)]
pub(crate) struct OpenFile {
    ledger: Arc<Ledger>,
    file: Identity,
}

/// What a mount may hold of its folder, for one call.
#[derive(Clone, Debug)]
pub(crate) struct Quota {
    /// The ledger of the folder.
    pub(crate) ledger: Arc<Ledger>,
    /// The bounds that no change may exceed. None for a mount without a quota whose folder has one through another.
    pub(crate) bounds: Bounds,
    /// The first bound that was reached in the call.
    pub(crate) reached: Arc<OnceLock<Limit>>,
}

/// The bounds of a folder, as limits with the words for them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Bounds {
    /// The most bytes.
    pub(crate) bytes: Option<(u64, Limit)>,
    /// The most entries.
    pub(crate) entries: Option<(u64, Limit)>,
}

impl Default for Ledgers {
    fn default() -> Self {
        let counting = Arc::new(Semaphore::new(COUNTING));
        Self { known: Mutex::default(), recent: Mutex::default(), counting }
    }
}

impl Ledgers {
    /// The ledger of a folder of which a mount may hold so much. It is made if there is none.
    pub(crate) fn of(&self, folder: &Arc<File>, bounds: &Bounds) -> Result<Arc<Ledger>, Errno> {
        let ledger = self.known(folder)?;
        let most = |bound: Option<(u64, Limit)>| bound.map_or(u64::MAX, |(most, _)| most);
        lock(&ledger.books).bound(most(bounds.bytes), most(bounds.entries));
        Ok(ledger)
    }

    fn known(&self, folder: &Arc<File>) -> Result<Arc<Ledger>, Errno> {
        let key = identity(&fstat(folder)?);
        let mut known = lock(&self.known);
        if let Some(ledger) = known.get(&key).and_then(Weak::upgrade) {
            return Ok(ledger);
        }
        known.retain(|_, ledger| ledger.strong_count() > 0);
        let ledger = Arc::new(Ledger::new(Arc::clone(folder), Arc::clone(&self.counting)));
        known.insert(key, Arc::downgrade(&ledger));
        Ok(ledger)
    }

    /// The ledger of a folder, if there is one.
    pub(crate) fn find(&self, folder: &File) -> Option<Arc<Ledger>> {
        let known = lock(&self.known);
        if known.is_empty() {
            return None;
        }
        known.get(&identity(&fstat(folder).ok()?))?.upgrade()
    }

    /// Keeps a ledger for later calls, in the place of the one that was not used for longest.
    pub(crate) fn keep(&self, ledger: &Arc<Ledger>) {
        let mut recent = lock(&self.recent);
        recent.retain(|other| !Arc::ptr_eq(other, ledger));
        recent.push_back(Arc::clone(ledger));
        if recent.len() > RECENT {
            recent.pop_front();
        }
    }
}

impl Ledger {
    fn new(folder: Arc<File>, counting: Arc<Semaphore>) -> Self {
        Self { folder, changing: Arc::default(), books: Mutex::default(), counting }
    }

    /// The ledger of a folder that is empty, and that nobody but one call knows.
    pub(crate) fn empty(folder: Arc<File>) -> Arc<Self> {
        let ledger = Self::new(folder, Arc::new(Semaphore::new(COUNTING)));
        lock(&ledger.books).count(Found::All(Holds::default()), Instant::now(), Duration::MAX);
        Arc::new(ledger)
    }

    /// Waits until the folder can be changed, and counts it if that was not done recently. Dropping the future stops
    /// that.
    pub(crate) async fn change(self: &Arc<Self>) -> io::Result<Change> {
        let alone = Arc::clone(&self.changing).lock_owned().await;
        let change = Change { ledger: Arc::clone(self), _alone: alone };
        let stale = lock(&self.books).is_stale(Instant::now());
        if stale { change.counted().await } else { Ok(change) }
    }

    /// Waits until nobody changes the folder.
    pub(crate) async fn at_rest(&self) {
        drop(self.changing.lock().await);
    }

    /// Notes what was counted. If the folder could not be counted to its end, the operator is told, once until it can.
    fn note(&self, found: Found, at: Instant, took: Duration) {
        let mut books = lock(&self.books);
        let before = books.full();
        books.count(found, at, took);
        drop(books);
        if let Found::Full(full) = found
            && full != Full::Quota
            && before != Some(full)
        {
            tracing::warn!(folder = ?path(&self.folder), "a folder with a quota counts as full: {full}");
        }
    }

    /// Notes that a call has a file of the folder open; nothing for what is not a file.
    pub(crate) fn open(self: &Arc<Self>, file: &File) -> Option<OpenFile> {
        let mut books = lock(&self.books);
        let found = fstat(file).ok()?;
        if !FileType::from_raw_mode(found.st_mode).is_file() {
            return None;
        }
        let nameless = (found.st_nlink == 0).then(|| length(&found));
        let key = identity(&found);
        books.opened(key, nameless);
        Some(OpenFile { ledger: Arc::clone(self), file: key })
    }
}

impl Drop for OpenFile {
    fn drop(&mut self) {
        lock(&self.ledger.books).closed(self.file);
    }
}

impl Change {
    /// Counts the folder.
    async fn counted(self) -> io::Result<Self> {
        /// Tells the thread to stop when the call is gone.
        struct Stop(Arc<AtomicBool>);
        impl Drop for Stop {
            fn drop(&mut self) {
                self.0.store(true, Ordering::Relaxed);
            }
        }
        // Never closed.
        let permit = Arc::clone(&self.ledger.counting).acquire_owned().await;
        let stop = Stop(Arc::default());
        let stopped = Arc::clone(&stop.0);
        let counting = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            let begun = Instant::now();
            let mut counted = Err(Errno::AGAIN);
            let most = lock(&self.ledger.books).most();
            for _ in 0..TRIES {
                counted = walk::count(&self.ledger.folder, most, &stopped);
                if counted != Err(Errno::AGAIN) {
                    break;
                }
            }
            let now = Instant::now();
            self.ledger.note(counted?, now, now.saturating_duration_since(begun));
            Ok(self)
        });
        counting.await.map_err(io::Error::other)?
    }

    /// Whether there is room for so much more. If there is not, the folder is counted again where that can help.
    ///
    /// # Errors
    ///
    /// There is no room ([`Errno::NOSPC`]), or the folder cannot be counted.
    pub(crate) async fn room(self, quota: &Quota, more: Holds) -> io::Result<Self> {
        if self.has_room(&quota.bounds, more).is_none() {
            return Ok(self);
        }
        let change = if self.may_have_room() { self.counted().await? } else { self };
        change.take_room(quota, more).map(|()| change)
    }

    /// Whether counting again may show that there is room.
    pub(crate) fn may_have_room(&self) -> bool {
        lock(&self.ledger.books).may_have_room(Instant::now())
    }

    /// Counts the folder again.
    pub(crate) async fn count_again(self) -> io::Result<Self> {
        self.counted().await
    }

    /// # Errors
    ///
    /// There is no room for so much more ([`Errno::NOSPC`]), which is noted for the call.
    pub(crate) fn take_room(&self, quota: &Quota, more: Holds) -> io::Result<()> {
        match self.has_room(&quota.bounds, more) {
            None => Ok(()),
            Some(limit) => {
                let _ = quota.reached.set(limit);
                Err(Errno::NOSPC.into())
            }
        }
    }

    /// The bound that so much more would exceed. What does not grow is always allowed.
    pub(crate) fn has_room(&self, bounds: &Bounds, more: Holds) -> Option<Limit> {
        let holds = lock(&self.ledger.books).holds();
        let exceeded = |bound: Option<(u64, Limit)>, holds: u64, more: u64| {
            bound.filter(|(most, _)| more > 0 && holds.saturating_add(more) > *most).map(|(_, limit)| limit)
        };
        exceeded(bounds.bytes, holds.bytes, more.bytes)
            .or_else(|| exceeded(bounds.entries, holds.entries, more.entries))
    }

    /// Notes that entries were made, or removed if negative.
    pub(crate) fn entries(&self, change: i64) {
        lock(&self.ledger.books).entries(change);
    }

    /// Notes that a file had one length and has another now.
    pub(crate) fn length(&self, file: Identity, before: u64, after: u64) {
        lock(&self.ledger.books).length(file, before, after);
    }

    /// Notes that one name of a file was removed: with the last, its bytes go, or will when it is closed.
    pub(crate) fn removed(&self, file: &File) {
        if let Ok(found) = fstat(file)
            && found.st_nlink == 0
        {
            lock(&self.ledger.books).nameless(identity(&found), length(&found));
        }
    }
}

impl Quota {
    /// Whether both are for the same folder.
    pub(crate) fn is_of(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.ledger, &other.ledger)
    }
}

/// Where an open folder is, for the log.
fn path(folder: &File) -> PathBuf {
    let path = std::fs::read_link(format!("/proc/self/fd/{}", folder.as_raw_fd()));
    path.unwrap_or_else(|_| PathBuf::from("(unknown)"))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use bytesize::ByteSize;

    use super::*;

    fn bounds(bytes: u64, entries: u64) -> Bounds {
        let limit = Limit::MountQuota(ByteSize::b(bytes));
        Bounds { bytes: Some((bytes, limit)), entries: Some((entries, Limit::MountEntries(0))) }
    }

    #[tokio::test]
    async fn a_full_folder_is_counted_again_for_a_mount_that_may_hold_more() {
        let root = tempfile::tempdir().unwrap();
        for name in ["a", "b"] {
            fs::write(root.path().join(name), "12345").unwrap();
        }
        let (ledgers, folder) = (Ledgers::default(), Arc::new(File::open(root.path()).unwrap()));
        let more = Holds { bytes: 1, entries: 0 };
        let measured = async |bounds: Bounds| {
            let change = ledgers.of(&folder, &bounds).unwrap().change().await.unwrap();
            // As if somebody deleted one: a folder that was not counted to its end stays full.
            change.entries(-1);
            change.has_room(&bounds, more).is_none()
        };
        assert!(!measured(bounds(4, 0)).await);
        assert!(!measured(bounds(4, 0)).await);
        assert!(measured(bounds(11, 5)).await);
        assert!(measured(bounds(11, 5)).await);
    }

    #[tokio::test]
    async fn what_does_not_grow_is_allowed_in_a_folder_that_cannot_be_counted() {
        let root = tempfile::tempdir().unwrap();
        let (ledgers, folder) = (Ledgers::default(), Arc::new(File::open(root.path()).unwrap()));
        let bounds = bounds(10, 10);
        let change = ledgers.of(&folder, &bounds).unwrap().change().await.unwrap();
        change.ledger.note(Found::Full(Full::Memory(1 << 20)), Instant::now(), Duration::ZERO);
        assert_eq!(change.has_room(&bounds, Holds::default()), None);
        let one = Holds { bytes: 1, entries: 0 };
        assert_eq!(change.has_room(&bounds, one), bounds.bytes.map(|(_, limit)| limit));
        // It is looked at again as soon as somebody may have made room.
        let change = change.counted().await.unwrap();
        assert_eq!(change.has_room(&bounds, one), None);
    }
}
