//! Usage accounting of directories with a quota. A directory is scanned once, and the ledger is
//! updated as calls of this server change it.
//!
//! A directory has one ledger, however many calls, plugins and mounts use it. A task that changes
//! the directory holds the [`Change`] of its ledger while it checks the usage, makes the change and
//! records the difference. Thus two calls never use the same free space. Waiting for it blocks no
//! thread. The work itself runs to its end even if the call is cancelled, because every change must
//! be recorded.

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

/// Capacity of the cache of ledgers that neither a call nor a plugin holds: those of per-caller
/// directories. Each has a file descriptor.
const RECENT: usize = 64;

/// Maximum number of directories that are scanned concurrently. Each scan takes a thread and up to
/// 32 MiB.
const COUNTING: usize = 2;

/// Maximum number of attempts of a scan. It restarts if a directory was moved in the meantime.
const TRIES: usize = 3;

/// The ledgers of a server, by directory.
#[derive(Debug)]
pub(crate) struct Ledgers {
    known: Mutex<HashMap<Identity, Weak<Ledger>>>,
    recent: Mutex<VecDeque<Arc<Ledger>>>,
    counting: Arc<Semaphore>,
}

/// The usage of a directory.
#[derive(Debug)]
pub(crate) struct Ledger {
    /// The open directory. While it is open, no other directory can get its identity.
    folder: Arc<File>,
    changing: Arc<tokio::sync::Mutex<()>>,
    books: Mutex<Books>,
    counting: Arc<Semaphore>,
}

/// The exclusive right to change a directory through this server.
#[derive(Debug)]
pub(crate) struct Change {
    ledger: Arc<Ledger>,
    _alone: OwnedMutexGuard<()>,
}

/// An open file of a call in a directory with a ledger.
#[derive(Debug)]
pub(crate) struct OpenFile {
    ledger: Arc<Ledger>,
    file: Identity,
}

/// The quota of a mount, for one call.
#[derive(Clone, Debug)]
pub(crate) struct Quota {
    /// The ledger of the directory.
    pub(crate) ledger: Arc<Ledger>,
    /// The bounds that no change may exceed. They are empty for a mount without a quota whose
    /// directory has one through another mount.
    pub(crate) bounds: Bounds,
    /// The first bound that the call reached.
    pub(crate) reached: Arc<OnceLock<Limit>>,
}

/// The bounds of a directory, with the limits to report.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Bounds {
    /// Maximum number of bytes.
    pub(crate) bytes: Option<(u64, Limit)>,
    /// Maximum number of entries.
    pub(crate) entries: Option<(u64, Limit)>,
}

impl Default for Ledgers {
    fn default() -> Self {
        let counting = Arc::new(Semaphore::new(COUNTING));
        Self { known: Mutex::default(), recent: Mutex::default(), counting }
    }
}

impl Ledgers {
    /// Returns the ledger of a directory, and registers the bounds of a mount with it. Creates the
    /// ledger if necessary.
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

    /// Returns the ledger of a directory, if it exists.
    pub(crate) fn find(&self, folder: &File) -> Option<Arc<Ledger>> {
        let known = lock(&self.known);
        if known.is_empty() {
            return None;
        }
        known.get(&identity(&fstat(folder).ok()?))?.upgrade()
    }

    /// Caches a ledger for later calls, and evicts the least recently used one.
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

    /// Returns the ledger of an empty directory that belongs to one call.
    pub(crate) fn empty(folder: Arc<File>) -> Arc<Self> {
        let ledger = Self::new(folder, Arc::new(Semaphore::new(COUNTING)));
        lock(&ledger.books).count(Found::All(Holds::default()), Instant::now(), Duration::MAX);
        Arc::new(ledger)
    }

    /// Waits until the directory can be changed. Scans it if the last scan is stale. Dropping the
    /// future stops the scan.
    pub(crate) async fn change(self: &Arc<Self>) -> io::Result<Change> {
        let alone = Arc::clone(&self.changing).lock_owned().await;
        let change = Change { ledger: Arc::clone(self), _alone: alone };
        let stale = lock(&self.books).is_stale(Instant::now());
        if stale { change.counted().await } else { Ok(change) }
    }

    /// Waits until no call changes the directory.
    pub(crate) async fn at_rest(&self) {
        drop(self.changing.lock().await);
    }

    /// Records the result of a scan. If the scan stopped early, logs a warning for the operator,
    /// once until a scan succeeds.
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

    /// Records that a call has a file of the directory open. Returns `None` if it is not a regular
    /// file.
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
    /// Scans the directory.
    async fn counted(self) -> io::Result<Self> {
        /// Stops the thread when the call is dropped.
        struct Stop(Arc<AtomicBool>);
        impl Drop for Stop {
            fn drop(&mut self) {
                self.0.store(true, Ordering::Relaxed);
            }
        }
        // The semaphore is never closed.
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

    /// Checks that there is space for `more`. If there is not, scans the directory again if this
    /// can help.
    ///
    /// # Errors
    ///
    /// Returns [`Errno::NOSPC`] if there is no space, or the error of the scan.
    pub(crate) async fn room(self, quota: &Quota, more: Holds) -> io::Result<Self> {
        if self.has_room(&quota.bounds, more).is_none() {
            return Ok(self);
        }
        let change = if self.may_have_room() { self.counted().await? } else { self };
        change.take_room(quota, more).map(|()| change)
    }

    /// Returns whether another scan may find free space.
    pub(crate) fn may_have_room(&self) -> bool {
        lock(&self.ledger.books).may_have_room(Instant::now())
    }

    /// Scans the directory again.
    pub(crate) async fn count_again(self) -> io::Result<Self> {
        self.counted().await
    }

    /// Checks that there is space for `more`.
    ///
    /// # Errors
    ///
    /// Returns [`Errno::NOSPC`] if there is no space, and records the bound for the call.
    pub(crate) fn take_room(&self, quota: &Quota, more: Holds) -> io::Result<()> {
        match self.has_room(&quota.bounds, more) {
            None => Ok(()),
            Some(limit) => {
                let _ = quota.reached.set(limit);
                Err(Errno::NOSPC.into())
            }
        }
    }

    /// Returns the bound that `more` would exceed. A dimension that does not grow is always
    /// allowed.
    pub(crate) fn has_room(&self, bounds: &Bounds, more: Holds) -> Option<Limit> {
        let holds = lock(&self.ledger.books).holds();
        let exceeded = |bound: Option<(u64, Limit)>, holds: u64, more: u64| {
            bound.filter(|(most, _)| more > 0 && holds.saturating_add(more) > *most).map(|(_, limit)| limit)
        };
        exceeded(bounds.bytes, holds.bytes, more.bytes)
            .or_else(|| exceeded(bounds.entries, holds.entries, more.entries))
    }

    /// Records that entries were created, or removed if `change` is negative.
    pub(crate) fn entries(&self, change: i64) {
        lock(&self.ledger.books).entries(change);
    }

    /// Records that the length of a file changed.
    pub(crate) fn length(&self, file: Identity, before: u64, after: u64) {
        lock(&self.ledger.books).length(file, before, after);
    }

    /// Records that one name of a file was removed. After the last name, its space is freed at
    /// once, or when the file is closed.
    pub(crate) fn removed(&self, file: &File) {
        if let Ok(found) = fstat(file)
            && found.st_nlink == 0
        {
            lock(&self.ledger.books).nameless(identity(&found), length(&found));
        }
    }
}

impl Quota {
    /// Returns whether both quotas are for the same directory.
    pub(crate) fn is_of(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.ledger, &other.ledger)
    }
}

/// Returns the path of an open directory, for the log.
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
            // As if another program deleted an entry: a directory that was not completely scanned
            // stays full.
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
        // The next scan happens as soon as another program may have freed space.
        let change = change.counted().await.unwrap();
        assert_eq!(change.has_room(&bounds, one), None);
    }
}
