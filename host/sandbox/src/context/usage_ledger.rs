//! Usage accounting of directories with a quota. A directory is scanned once, and the ledger is
//! updated as calls of this server change it.
//!
//! A directory has one ledger, however many calls, plugins and mounts use it. A task that changes
//! the directory holds the [`ChangePermit`] of its ledger while it checks the usage, makes the
//! change and records the difference. Thus two calls never use the same free space. Waiting for the
//! permit blocks no thread. The work itself runs to its end even if the call is cancelled, because
//! every change must be recorded.

mod directory_scan;
mod usage_state;

use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use rustix::fs::{FileType, fstat};
use rustix::io::Errno;
use tokio::sync::{OwnedMutexGuard, Semaphore};
use toolbay_model::Limit;

use self::directory_scan::FullReason;
#[cfg(test)]
pub(crate) use self::directory_scan::scan_directory;
pub(crate) use self::directory_scan::{DirectoryUsage, InodeId, ScanResult, file_length, inode_id};
use self::usage_state::UsageState;

/// Capacity of the cache of ledgers that neither a call nor a plugin holds: those of per-caller
/// directories. Each has a file descriptor.
const RECENT_LEDGERS_CAPACITY: usize = 64;

/// Maximum number of directories that are scanned concurrently. Each scan takes a thread and up to
/// 32 MiB.
const MAX_CONCURRENT_SCANS: usize = 2;

/// Maximum number of attempts of a scan. It restarts if a directory was moved in the meantime.
const MAX_SCAN_ATTEMPTS: usize = 3;

/// The ledgers of a server, by directory.
#[derive(Debug)]
pub(crate) struct LedgerRegistry {
    ledgers: Mutex<HashMap<InodeId, Weak<UsageLedger>>>,
    recent_ledgers: Mutex<VecDeque<Arc<UsageLedger>>>,
    scan_permits: Arc<Semaphore>,
}

/// The usage of a directory.
#[derive(Debug)]
pub(crate) struct UsageLedger {
    /// The open directory. While it is open, no other directory can get its identity.
    folder: Arc<File>,
    change_lock: Arc<tokio::sync::Mutex<()>>,
    state: Mutex<UsageState>,
    scan_permits: Arc<Semaphore>,
}

/// The exclusive right to change a directory through this server.
#[derive(Debug)]
pub(crate) struct ChangePermit {
    ledger: Arc<UsageLedger>,
    _guard: OwnedMutexGuard<()>,
}

/// An open file of a call in a directory with a ledger.
#[derive(Debug)]
pub(crate) struct OpenFile {
    ledger: Arc<UsageLedger>,
    file: InodeId,
}

/// The quota of a mount, for one call.
#[derive(Clone, Debug)]
pub(crate) struct CallQuota {
    /// The ledger of the directory.
    pub(crate) ledger: Arc<UsageLedger>,
    /// The bounds that no change may exceed. They are empty for a mount without a quota whose
    /// directory has one through another mount.
    pub(crate) bounds: UsageBounds,
    /// The first bound that the call reached.
    pub(crate) reached_limit: Arc<OnceLock<Limit>>,
}

/// The bounds of a directory, with the limits to report.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct UsageBounds {
    /// Maximum number of bytes.
    pub(crate) bytes: Option<(u64, Limit)>,
    /// Maximum number of entries.
    pub(crate) entries: Option<(u64, Limit)>,
}

impl Default for LedgerRegistry {
    fn default() -> Self {
        let scan_permits = Arc::new(Semaphore::new(MAX_CONCURRENT_SCANS));
        Self {
            ledgers: Mutex::default(),
            recent_ledgers: Mutex::default(),
            scan_permits,
        }
    }
}

impl LedgerRegistry {
    /// Returns the ledger of a directory, and registers the bounds of a mount with it. Creates the
    /// ledger if necessary.
    pub(crate) fn register(
        &self,
        folder: &Arc<File>,
        bounds: &UsageBounds,
    ) -> Result<Arc<UsageLedger>, Errno> {
        let ledger = self.get_or_create(folder)?;
        let max_bound = |bound: Option<(u64, Limit)>| bound.map_or(u64::MAX, |(most, _)| most);
        lock(&ledger.state).raise_bounds(max_bound(bounds.bytes), max_bound(bounds.entries));
        Ok(ledger)
    }

    fn get_or_create(&self, folder: &Arc<File>) -> Result<Arc<UsageLedger>, Errno> {
        let key = inode_id(&fstat(folder)?);
        let mut ledgers = lock(&self.ledgers);
        if let Some(ledger) = ledgers.get(&key).and_then(Weak::upgrade) {
            return Ok(ledger);
        }
        ledgers.retain(|_, ledger| ledger.strong_count() > 0);
        let ledger = Arc::new(UsageLedger::new(
            Arc::clone(folder),
            Arc::clone(&self.scan_permits),
        ));
        ledgers.insert(key, Arc::downgrade(&ledger));
        Ok(ledger)
    }

    /// Returns the ledger of a directory, if it exists.
    pub(crate) fn find(&self, folder: &File) -> Option<Arc<UsageLedger>> {
        let ledgers = lock(&self.ledgers);
        if ledgers.is_empty() {
            return None;
        }
        ledgers.get(&inode_id(&fstat(folder).ok()?))?.upgrade()
    }

    /// Caches a ledger for later calls, and evicts the least recently used one.
    pub(crate) fn cache(&self, ledger: &Arc<UsageLedger>) {
        let mut recent_ledgers = lock(&self.recent_ledgers);
        recent_ledgers.retain(|other| !Arc::ptr_eq(other, ledger));
        recent_ledgers.push_back(Arc::clone(ledger));
        if recent_ledgers.len() > RECENT_LEDGERS_CAPACITY {
            recent_ledgers.pop_front();
        }
    }
}

impl UsageLedger {
    fn new(folder: Arc<File>, scan_permits: Arc<Semaphore>) -> Self {
        Self {
            folder,
            change_lock: Arc::default(),
            state: Mutex::default(),
            scan_permits,
        }
    }

    /// Returns the ledger of an empty directory that belongs to one call.
    pub(crate) fn empty(folder: Arc<File>) -> Arc<Self> {
        let ledger = Self::new(folder, Arc::new(Semaphore::new(MAX_CONCURRENT_SCANS)));
        lock(&ledger.state).record_scan(
            ScanResult::All(DirectoryUsage::default()),
            Instant::now(),
            Duration::MAX,
        );
        Arc::new(ledger)
    }

    /// Waits until the directory can be changed. Scans it if the last scan is stale. Dropping the
    /// future stops the scan.
    pub(crate) async fn change(self: &Arc<Self>) -> io::Result<ChangePermit> {
        let guard = Arc::clone(&self.change_lock).lock_owned().await;
        let change = ChangePermit {
            ledger: Arc::clone(self),
            _guard: guard,
        };
        let is_stale = lock(&self.state).is_stale(Instant::now());
        if is_stale {
            change.scan().await
        } else {
            Ok(change)
        }
    }

    /// Waits until no call changes the directory.
    pub(crate) async fn wait_until_idle(&self) {
        drop(self.change_lock.lock().await);
    }

    /// Records the result of a scan. If the scan stopped early, logs a warning for the operator,
    /// once until a scan succeeds.
    fn record_scan(&self, result: ScanResult, at: Instant, duration: Duration) {
        let mut state = lock(&self.state);
        let before = state.full_reason();
        state.record_scan(result, at, duration);
        drop(state);
        if let ScanResult::Full(full) = result
            && full != FullReason::Quota
            && before != Some(full)
        {
            tracing::warn!(folder = ?directory_path(&self.folder), "a folder with a quota counts as full: {full}");
        }
    }

    /// Records that a call has a file of the directory open. Returns `None` if it is not a regular
    /// file.
    pub(crate) fn track_open_file(self: &Arc<Self>, file: &File) -> Option<OpenFile> {
        let mut state = lock(&self.state);
        let stat = fstat(file).ok()?;
        if !FileType::from_raw_mode(stat.st_mode).is_file() {
            return None;
        }
        let nameless = (stat.st_nlink == 0).then(|| file_length(&stat));
        let key = inode_id(&stat);
        state.record_open(key, nameless);
        Some(OpenFile {
            ledger: Arc::clone(self),
            file: key,
        })
    }
}

impl Drop for OpenFile {
    fn drop(&mut self) {
        lock(&self.ledger.state).record_close(self.file);
    }
}

impl ChangePermit {
    /// Scans the directory.
    async fn scan(self) -> io::Result<Self> {
        /// Stops the thread when the call is dropped.
        struct StopSignal(Arc<AtomicBool>);
        impl Drop for StopSignal {
            fn drop(&mut self) {
                self.0.store(true, Ordering::Relaxed);
            }
        }
        // The semaphore is never closed.
        let permit = Arc::clone(&self.ledger.scan_permits).acquire_owned().await;
        let stop = StopSignal(Arc::default());
        let stopped = Arc::clone(&stop.0);
        let scan = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            let start = Instant::now();
            let mut result = Err(Errno::AGAIN);
            let bounds = lock(&self.ledger.state).max_bounds();
            for _ in 0..MAX_SCAN_ATTEMPTS {
                result = directory_scan::scan_directory(&self.ledger.folder, bounds, &stopped);
                if result != Err(Errno::AGAIN) {
                    break;
                }
            }
            let now = Instant::now();
            self.ledger
                .record_scan(result?, now, now.saturating_duration_since(start));
            Ok(self)
        });
        scan.await.map_err(io::Error::other)?
    }

    /// Checks that there is space for `more`. If there is not, scans the directory again if this
    /// can help.
    ///
    /// # Errors
    ///
    /// Returns [`Errno::NOSPC`] if there is no space, or the error of the scan.
    pub(crate) async fn ensure_space(
        self,
        quota: &CallQuota,
        more: DirectoryUsage,
    ) -> io::Result<Self> {
        if self.exceeded_bound(&quota.bounds, more).is_none() {
            return Ok(self);
        }
        let change = if self.may_gain_space() {
            self.scan().await?
        } else {
            self
        };
        change.check_space(quota, more).map(|()| change)
    }

    /// Returns whether another scan may find free space.
    pub(crate) fn may_gain_space(&self) -> bool {
        lock(&self.ledger.state).may_gain_space(Instant::now())
    }

    /// Scans the directory again.
    pub(crate) async fn rescan(self) -> io::Result<Self> {
        self.scan().await
    }

    /// Checks that there is space for `more`.
    ///
    /// # Errors
    ///
    /// Returns [`Errno::NOSPC`] if there is no space, and records the bound for the call.
    pub(crate) fn check_space(&self, quota: &CallQuota, more: DirectoryUsage) -> io::Result<()> {
        match self.exceeded_bound(&quota.bounds, more) {
            None => Ok(()),
            Some(limit) => {
                let _ = quota.reached_limit.set(limit);
                Err(Errno::NOSPC.into())
            }
        }
    }

    /// Returns the bound that `more` would exceed. A dimension that does not grow is always
    /// allowed.
    pub(crate) fn exceeded_bound(
        &self,
        bounds: &UsageBounds,
        more: DirectoryUsage,
    ) -> Option<Limit> {
        let usage = lock(&self.ledger.state).usage();
        let exceeded = |bound: Option<(u64, Limit)>, used: u64, more: u64| {
            bound
                .filter(|(max, _)| more > 0 && used.saturating_add(more) > *max)
                .map(|(_, limit)| limit)
        };
        exceeded(bounds.bytes, usage.bytes, more.bytes)
            .or_else(|| exceeded(bounds.entries, usage.entries, more.entries))
    }

    /// Records that entries were created, or removed if `change` is negative.
    pub(crate) fn add_entries(&self, change: i64) {
        lock(&self.ledger.state).add_entries(change);
    }

    /// Records that the length of a file changed.
    pub(crate) fn update_length(&self, file: InodeId, before: u64, after: u64) {
        lock(&self.ledger.state).update_length(file, before, after);
    }

    /// Records that one name of a file was removed. After the last name, its space is freed at
    /// once, or when the file is closed.
    pub(crate) fn record_removal(&self, file: &File) {
        if let Ok(stat) = fstat(file)
            && stat.st_nlink == 0
        {
            lock(&self.ledger.state).record_unlinked(inode_id(&stat), file_length(&stat));
        }
    }
}

impl CallQuota {
    /// Returns whether both quotas are for the same directory.
    pub(crate) fn shares_ledger(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.ledger, &other.ledger)
    }
}

/// Returns the path of an open directory, for the log.
fn directory_path(folder: &File) -> PathBuf {
    let path = std::fs::read_link(format!("/proc/self/fd/{}", folder.as_raw_fd()));
    path.unwrap_or_else(|_| PathBuf::from("(unknown)"))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock()
}

#[cfg(test)]
mod tests;
