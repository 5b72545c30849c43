//! Watches the plugin folder and reports that something changed. The only module that uses
//! `notify`.

use std::collections::{BTreeMap, HashSet};
use std::ffi::OsString;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use notify::event::{AccessKind, AccessMode};
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

/// Time for which events are collected before they are reported, because one write causes many
/// events. The reloader itself waits until the folder is quiet.
const GATHER_INTERVAL: Duration = Duration::from_millis(20);

/// Maximum number of watched folders with plain files. Changes in other folders are found by the
/// next scan.
const MAX_SUBFOLDER_WATCHES: usize = 4096;

/// Number of watches that are set before the task yields to other tasks.
const WATCHES_PER_YIELD: usize = 32;

/// The changes since the last report.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FolderChanges {
    /// The names in the folder that events mentioned, directly or through paths below them. The
    /// reloader reads these files even if their stamps are unchanged.
    pub names: HashSet<OsString>,
}

/// Watches a folder until it is dropped.
pub struct FolderWatcher {
    notifier: RecommendedWatcher,
    folder: PathBuf,
    /// Device and inode of the watched folder; `None` if the folder does not exist.
    watched_identity: Option<(u64, u64)>,
    /// True if a warning that the folder cannot be watched has been logged.
    has_warned: bool,
    inbox: Arc<EventInbox>,
    /// The watched subfolders, with device and inode.
    subfolders: BTreeMap<PathBuf, (u64, u64)>,
}

/// Collects events. Its size is bounded by the number of names, not of events.
#[derive(Default)]
struct EventInbox {
    pending: Mutex<PendingEvents>,
    wakeup: Notify,
}

#[derive(Default)]
struct PendingEvents {
    changes: FolderChanges,
    /// The time of the first event.
    first_event: Option<Instant>,
    has_changes: bool,
    /// True if the folder itself was moved, deleted or created, so that its watch may belong to the
    /// old one.
    folder_moved: bool,
}

impl FolderWatcher {
    /// Watches `folder`, and its parent in case the folder is moved away and back.
    ///
    /// # Errors
    ///
    /// Returns an error with advice if the operating system refuses to watch.
    pub fn new(folder: &Path) -> Result<Self, String> {
        let inbox = Arc::new(EventInbox::default());
        // Events contain paths in the form in which they were watched. Only an absolute path always
        // has a parent to watch.
        let folder = std::path::absolute(folder).map_err(|error| error.to_string())?;
        let handler = {
            let inbox = Arc::clone(&inbox);
            let folder = folder.clone();
            move |result: notify::Result<Event>| inbox.record(&folder, result)
        };
        let notifier =
            notify::recommended_watcher(handler).map_err(|error| describe_error(&error))?;
        let mut watcher = Self {
            notifier,
            folder,
            watched_identity: None,
            has_warned: false,
            inbox,
            subfolders: BTreeMap::new(),
        };
        watcher
            .set_watches()
            .map_err(|error| describe_error(&error))?;
        Ok(watcher)
    }

    /// Watches files, and folders with everything in them. Reports only that something changed, not
    /// which paths.
    ///
    /// # Errors
    ///
    /// Returns an error if the operating system refuses to watch.
    pub fn for_paths(paths: &[PathBuf]) -> Result<Self, String> {
        let inbox = Arc::new(EventInbox::default());
        let paths: Vec<PathBuf> = paths
            .iter()
            .filter_map(|path| std::path::absolute(path).ok())
            .collect();
        let handler = {
            let inbox = Arc::clone(&inbox);
            let paths = paths.clone();
            move |result: notify::Result<Event>| inbox.record_within(&paths, result)
        };
        let notifier =
            notify::recommended_watcher(handler).map_err(|error| describe_error(&error))?;
        let mut watcher = Self {
            notifier,
            folder: PathBuf::new(),
            watched_identity: None,
            has_warned: false,
            inbox,
            subfolders: BTreeMap::new(),
        };
        for path in &paths {
            // Editors replace files when they save, so the folder of the file is watched.
            let (watched_path, mode) = if path.is_dir() {
                (path.as_path(), RecursiveMode::Recursive)
            } else {
                (path.parent().unwrap_or(path), RecursiveMode::NonRecursive)
            };
            watcher
                .notifier
                .watch(watched_path, mode)
                .map_err(|error| format!("cannot watch {}: {error}", path.display()))?;
        }
        Ok(watcher)
    }

    /// Watches exactly these subfolders. The device and inode of each are compared, because another
    /// folder may have replaced it.
    pub(crate) async fn watch_subfolders(&mut self, folders: BTreeMap<PathBuf, (u64, u64)>) {
        // Absolute, because events contain the paths as they were watched.
        let absolute = |(path, identity)| Some((std::path::absolute(path).ok()?, identity));
        let folders: BTreeMap<PathBuf, (u64, u64)> = folders
            .into_iter()
            .filter_map(absolute)
            .take(MAX_SUBFOLDER_WATCHES)
            .collect();
        if folders == self.subfolders {
            return;
        }
        let previous = std::mem::take(&mut self.subfolders);
        for path in previous
            .iter()
            .filter(|(path, identity)| folders.get(*path) != Some(identity))
            .map(|(path, _)| path)
        {
            // Fails if the folder was deleted, which is fine.
            drop(self.notifier.unwatch(path));
        }
        let mut new_watches = 0;
        for (path, identity) in folders {
            if previous.get(&path) != Some(&identity) {
                if let Err(error) = self.notifier.watch(&path, RecursiveMode::NonRecursive) {
                    // Scans find the changes in it. Another attempt would fail as well, because
                    // there are no more watches.
                    tracing::debug!(path = %path.display(), "{}", describe_error(&error));
                } else {
                    new_watches += 1;
                }
                if new_watches % WATCHES_PER_YIELD == 0 {
                    tokio::task::yield_now().await;
                }
            }
            self.subfolders.insert(path, identity);
        }
        if new_watches > 0 {
            // Something may have changed between the scan and the watch.
            self.inbox.request_rescan();
        }
    }

    /// Waits for changes, collects those that follow closely, and returns them.
    pub async fn changes(&mut self) -> FolderChanges {
        let inbox = Arc::clone(&self.inbox);
        loop {
            // Cancel-safe: nothing is taken before both waits have finished.
            let Some(first_event) = inbox.first_event_time() else {
                inbox.wakeup.notified().await;
                continue;
            };
            tokio::time::sleep_until(first_event + GATHER_INTERVAL).await;
            let pending = std::mem::take(&mut *inbox.pending.lock());
            if pending.folder_moved {
                self.reset_watches();
            }
            if pending.has_changes {
                return pending.changes;
            }
        }
    }

    fn set_watches(&mut self) -> notify::Result<()> {
        if let Some(parent) = self.folder.parent() {
            // Not fatal: without a watch of the parent, a folder that is moved back is found by the
            // next scan instead of at once.
            if let Err(error) = self.notifier.watch(parent, RecursiveMode::NonRecursive) {
                tracing::debug!(%error, "cannot watch the parent of the plugin folder");
            }
        }
        // Read before the watch is set, so that a folder that replaces it in between counts as a
        // different one.
        self.watched_identity = folder_identity(&self.folder);
        if self.watched_identity.is_some() {
            self.notifier
                .watch(&self.folder, RecursiveMode::NonRecursive)
                .inspect_err(|_| self.watched_identity = None)?;
        }
        Ok(())
    }

    /// Watches the folder again if the folder at its path is not the watched one. Mounting a folder
    /// over another causes no event, and the operating system may refuse a watch temporarily.
    pub(crate) fn rewatch_if_replaced(&mut self) {
        if folder_identity(&self.folder) != self.watched_identity {
            self.reset_watches();
        }
    }

    /// Sets the watch again, because the folder at this path may have been replaced.
    fn reset_watches(&mut self) {
        // Fails if there was no watch, which is fine.
        drop(self.notifier.unwatch(&self.folder));
        match self.set_watches() {
            Ok(()) if self.has_warned => {
                tracing::info!("the plugin folder is watched again");
                self.has_warned = false;
            }
            Ok(()) => {}
            Err(error) if self.has_warned => tracing::debug!("{}", describe_error(&error)),
            Err(error) => {
                tracing::warn!(
                    "{}; changes are found every 2 seconds",
                    describe_error(&error)
                );
                self.has_warned = true;
            }
        }
    }
}

impl EventInbox {
    fn record(&self, folder: &Path, result: notify::Result<Event>) {
        let mut pending = self.pending.lock();
        match result {
            Ok(event) => pending.add_event(folder, &event),
            Err(error) => {
                tracing::warn!("{}", describe_error(&error));
                // A scan of the folder finds anything that was missed.
                pending.has_changes = true;
            }
        }
        if pending.has_changes || pending.folder_moved {
            pending.first_event.get_or_insert_with(Instant::now);
            drop(pending);
            self.wakeup.notify_one();
        }
    }

    /// Requests a scan of everything.
    fn request_rescan(&self) {
        let mut pending = self.pending.lock();
        pending.has_changes = true;
        pending.first_event.get_or_insert_with(Instant::now);
        drop(pending);
        self.wakeup.notify_one();
    }

    /// Returns the time of the first change that has not been taken.
    fn first_event_time(&self) -> Option<Instant> {
        self.pending.lock().first_event
    }

    /// Records that something at or below one of `paths` changed.
    fn record_within(&self, paths: &[PathBuf], result: notify::Result<Event>) {
        let is_relevant = |event: Event| {
            let is_within = event
                .paths
                .iter()
                .any(|path| paths.iter().any(|watched| path.starts_with(watched)));
            event.need_rescan() || (is_within && is_change(event.kind))
        };
        if result.map_or(true, is_relevant) {
            self.request_rescan();
        }
    }
}

/// Returns whether an event is a change. Reading causes access events; of these, only the end of a
/// write counts.
fn is_change(kind: EventKind) -> bool {
    !matches!(kind, EventKind::Access(kind) if kind != AccessKind::Close(AccessMode::Write))
}

impl PendingEvents {
    fn add_event(&mut self, folder: &Path, event: &Event) {
        if event.need_rescan() {
            self.has_changes = true;
            return;
        }
        if !is_change(event.kind) {
            return;
        }
        for path in &event.paths {
            if path == folder {
                self.folder_moved = true;
                self.has_changes = true;
            } else if let Ok(relative) = path.strip_prefix(folder) {
                self.has_changes = true;
                self.changes
                    .names
                    .extend(relative.iter().next().map(OsString::from));
            }
        }
    }
}

/// Returns the device and inode of a folder; `None` if it does not exist.
fn folder_identity(folder: &Path) -> Option<(u64, u64)> {
    std::fs::metadata(folder)
        .ok()
        .filter(Metadata::is_dir)
        .map(|metadata| (metadata.dev(), metadata.ino()))
}

/// Describes the error, with advice for the two cases that occur in practice.
fn describe_error(error: &notify::Error) -> String {
    match &error.kind {
        notify::ErrorKind::MaxFilesWatch => {
            "cannot watch the plugin folder: too many inotify watches; raise fs.inotify.max_user_watches".to_owned()
        }
        notify::ErrorKind::Io(io) if io.raw_os_error() == Some(24) => {
            "cannot watch the plugin folder: too many open files; raise fs.inotify.max_user_instances or ulimit -n"
                .to_owned()
        }
        _ => format!("cannot watch the plugin folder: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_watch_that_was_lost_is_set_again() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("plugins");
        std::fs::create_dir(&folder).unwrap();
        let mut watcher = FolderWatcher::new(&folder).unwrap();
        // Simulates another folder mounted there: no event reports it.
        watcher.notifier.unwatch(&folder).unwrap();
        watcher.watched_identity = Some((0, 0));
        watcher.has_warned = true;
        watcher.rewatch_if_replaced();
        assert_eq!(
            (watcher.watched_identity, watcher.has_warned),
            (folder_identity(&folder), false)
        );
        std::fs::write(folder.join("a.wasm"), "").unwrap();
        while !watcher
            .changes()
            .await
            .names
            .contains(&OsString::from("a.wasm"))
        {}
        // A deleted folder has no watch, and gets one when it is back.
        std::fs::remove_dir_all(&folder).unwrap();
        watcher.rewatch_if_replaced();
        assert_eq!(watcher.watched_identity, None);
        std::fs::create_dir(&folder).unwrap();
        watcher.rewatch_if_replaced();
        assert_eq!(watcher.watched_identity, folder_identity(&folder));
        std::fs::write(folder.join("b.wasm"), "").unwrap();
        while !watcher
            .changes()
            .await
            .names
            .contains(&OsString::from("b.wasm"))
        {}
    }
}
