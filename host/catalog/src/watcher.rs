//! Watches the plugin folder and says that something changed. The only module that knows `notify`.

use std::collections::HashSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use notify::event::{AccessKind, AccessMode};
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};
use tokio::sync::Notify;
use tokio::time::Instant;

/// How long events are gathered before they are reported: one write is many events. The reloader waits for quiet by
/// itself.
const GATHER: Duration = Duration::from_millis(20);

/// What changed since somebody last asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Names in the folder that events spoke of: read these even if their fingerprints say that nothing changed.
    pub names: HashSet<OsString>,
}

/// Watches until it is dropped.
pub struct Watcher {
    events: RecommendedWatcher,
    folder: PathBuf,
    inbox: Arc<Inbox>,
}

/// Where events wait: one set, however many events there are.
#[derive(Default)]
struct Inbox {
    changes: Mutex<Pending>,
    news: Notify,
}

#[derive(Default)]
struct Pending {
    changes: Changes,
    /// When the first of them came.
    since: Option<Instant>,
    any: bool,
    /// The folder itself was moved, deleted or made: its watch may be of an old one.
    moved: bool,
}

impl Watcher {
    /// Watches `folder`, and its parent for the day it is moved away and back.
    ///
    /// # Errors
    ///
    /// The operating system refuses; the text says what to do about it.
    pub fn new(folder: &Path) -> Result<Self, String> {
        let inbox = Arc::new(Inbox::default());
        // Events name paths as they were watched: an absolute one has a parent to watch.
        let folder = std::path::absolute(folder).map_err(|error| error.to_string())?;
        let handler = {
            let (inbox, folder) = (Arc::clone(&inbox), folder.clone());
            move |result: notify::Result<Event>| inbox.put(&folder, result)
        };
        let events = notify::recommended_watcher(handler).map_err(|error| advice(&error))?;
        let mut watcher = Self { events, folder, inbox };
        watcher.watch().map_err(|error| advice(&error))?;
        Ok(watcher)
    }

    /// Watches files, and folders with all that is in them. What changed is not told, only that something did.
    ///
    /// # Errors
    ///
    /// As [`Watcher::new`].
    pub fn over(paths: &[PathBuf]) -> Result<Self, String> {
        let inbox = Arc::new(Inbox::default());
        let paths: Vec<PathBuf> = paths.iter().filter_map(|path| std::path::absolute(path).ok()).collect();
        let handler = {
            let (inbox, paths) = (Arc::clone(&inbox), paths.clone());
            move |result: notify::Result<Event>| inbox.put_within(&paths, result)
        };
        let events = notify::recommended_watcher(handler).map_err(|error| advice(&error))?;
        let mut watcher = Self { events, folder: PathBuf::new(), inbox };
        for path in &paths {
            // Editors replace files: what is watched is the folder that a file is in.
            let (at, mode) = if path.is_dir() {
                (path.as_path(), RecursiveMode::Recursive)
            } else {
                (path.parent().unwrap_or(path), RecursiveMode::NonRecursive)
            };
            watcher.events.watch(at, mode).map_err(|error| format!("cannot watch {}: {error}", path.display()))?;
        }
        Ok(watcher)
    }

    /// Waits for changes, gathers those that come with them, and takes them.
    pub async fn changes(&mut self) -> Changes {
        let inbox = Arc::clone(&self.inbox);
        loop {
            // Dropped at either wait, it finds everything again: nothing is taken before both are over.
            let Some(since) = inbox.since() else {
                inbox.news.notified().await;
                continue;
            };
            tokio::time::sleep_until(since + GATHER).await;
            let pending = std::mem::take(&mut *inbox.changes.lock().unwrap_or_else(PoisonError::into_inner));
            if pending.moved {
                self.watch_again();
            }
            if pending.any {
                return pending.changes;
            }
        }
    }

    fn watch(&mut self) -> notify::Result<()> {
        if let Some(parent) = self.folder.parent() {
            // Not fatal: a parent that may not be read only means that a folder
            // moved back is found at the next look instead of at once.
            if let Err(error) = self.events.watch(parent, RecursiveMode::NonRecursive) {
                tracing::debug!(%error, "cannot watch the parent of the plugin folder");
            }
        }
        if self.folder.exists() { self.events.watch(&self.folder, RecursiveMode::NonRecursive) } else { Ok(()) }
    }

    /// The folder at this path may be another one than before.
    fn watch_again(&mut self) {
        // Fails when there was no watch, which is fine.
        drop(self.events.unwatch(&self.folder));
        if let Err(error) = self.watch() {
            tracing::warn!("{}", advice(&error));
        }
    }
}

impl Inbox {
    fn put(&self, folder: &Path, result: notify::Result<Event>) {
        let mut pending = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        match result {
            Ok(event) => pending.add(folder, &event),
            Err(error) => {
                tracing::warn!("{}", advice(&error));
                // Whatever was missed, a look at the folder finds it.
                pending.any = true;
            }
        }
        if pending.any || pending.moved {
            pending.since.get_or_insert_with(Instant::now);
            drop(pending);
            self.news.notify_one();
        }
    }

    /// When the first change that nobody has taken came.
    fn since(&self) -> Option<Instant> {
        self.changes.lock().unwrap_or_else(PoisonError::into_inner).since
    }

    /// Notes that something at or below one of `paths` changed.
    fn put_within(&self, paths: &[PathBuf], result: notify::Result<Event>) {
        let within = |event: Event| {
            let touched = event.paths.iter().any(|path| paths.iter().any(|watched| path.starts_with(watched)));
            event.need_rescan() || (touched && is_change(event.kind))
        };
        if result.map_or(true, within) {
            let mut pending = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
            pending.any = true;
            pending.since.get_or_insert_with(Instant::now);
            drop(pending);
            self.news.notify_one();
        }
    }
}

/// Reading makes access events: only the end of a write is news.
fn is_change(kind: EventKind) -> bool {
    !matches!(kind, EventKind::Access(kind) if kind != AccessKind::Close(AccessMode::Write))
}

impl Pending {
    fn add(&mut self, folder: &Path, event: &Event) {
        if event.need_rescan() {
            self.any = true;
            return;
        }
        if !is_change(event.kind) {
            return;
        }
        for path in &event.paths {
            if path == folder {
                self.moved = true;
                self.any = true;
            } else if path.parent() == Some(folder) {
                self.any = true;
                self.changes.names.extend(path.file_name().map(OsString::from));
            }
        }
    }
}

/// The error, with what to do about the two that people meet.
fn advice(error: &notify::Error) -> String {
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
