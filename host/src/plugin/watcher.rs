//! Watches the plugin folder and says that something changed. The only module that knows `notify`.

use std::collections::HashSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use notify_debouncer_full::notify::event::{AccessKind, AccessMode};
use notify_debouncer_full::notify::{self, EventKind, RecommendedWatcher, RecursiveMode};
use notify_debouncer_full::{DebounceEventResult, DebouncedEvent, Debouncer, NoCache, new_debouncer_opt};
use tokio::sync::Notify;

/// How long events are gathered before they are told. The reloader waits for
/// quiet by itself; this only keeps one write from being many events.
const GATHER: Duration = Duration::from_millis(20);

/// How often gathered events are looked at.
const TICK: Duration = Duration::from_millis(10);

/// What changed since somebody last asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Names in the folder that events spoke of: read these even if their fingerprints say that nothing changed.
    pub names: HashSet<OsString>,
}

/// Watches until it is dropped.
pub struct Watcher {
    debouncer: Debouncer<RecommendedWatcher, NoCache>,
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
            move |result: DebounceEventResult| inbox.put(&folder, result)
        };
        let debouncer = new_debouncer_opt(GATHER, Some(TICK), handler, NoCache, notify::Config::default())
            .map_err(|error| advice(&error))?;
        let mut watcher = Self { debouncer, folder, inbox };
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
            move |result: DebounceEventResult| inbox.put_within(&paths, result)
        };
        let debouncer = new_debouncer_opt(GATHER, Some(TICK), handler, NoCache, notify::Config::default())
            .map_err(|error| advice(&error))?;
        let mut watcher = Self { debouncer, folder: PathBuf::new(), inbox };
        for path in &paths {
            // Editors replace files: what is watched is the folder that a file is in.
            let (at, mode) = if path.is_dir() {
                (path.as_path(), RecursiveMode::Recursive)
            } else {
                (path.parent().unwrap_or(path), RecursiveMode::NonRecursive)
            };
            watcher.debouncer.watch(at, mode).map_err(|error| format!("cannot watch {}: {error}", path.display()))?;
        }
        Ok(watcher)
    }

    /// Waits for changes and takes them.
    pub async fn changes(&mut self) -> Changes {
        let inbox = Arc::clone(&self.inbox);
        loop {
            let news = inbox.news.notified();
            let pending = std::mem::take(&mut *inbox.changes.lock().unwrap_or_else(PoisonError::into_inner));
            if pending.moved {
                self.watch_again();
            }
            if pending.any {
                return pending.changes;
            }
            news.await;
        }
    }

    fn watch(&mut self) -> notify::Result<()> {
        if let Some(parent) = self.folder.parent() {
            // Not fatal: a parent that may not be read only means that a folder
            // moved back is found at the next look instead of at once.
            if let Err(error) = self.debouncer.watch(parent, RecursiveMode::NonRecursive) {
                tracing::debug!(%error, "the folder above the plugins cannot be watched");
            }
        }
        if self.folder.exists() { self.debouncer.watch(&self.folder, RecursiveMode::NonRecursive) } else { Ok(()) }
    }

    /// The folder at this path may be another one than before.
    fn watch_again(&mut self) {
        // Fails when there was no watch, which is fine.
        drop(self.debouncer.unwatch(&self.folder));
        if let Err(error) = self.watch() {
            tracing::warn!("{}", advice(&error));
        }
    }
}

impl Inbox {
    fn put(&self, folder: &Path, result: DebounceEventResult) {
        let mut pending = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        match result {
            Ok(events) => events.iter().for_each(|event| pending.add(folder, event)),
            Err(errors) => {
                for error in errors {
                    tracing::warn!("{}", advice(&error));
                }
                // Whatever was missed, a look at the folder finds it.
                pending.any = true;
            }
        }
        let any = pending.any || pending.moved;
        drop(pending);
        if any {
            self.news.notify_one();
        }
    }

    /// Notes that something at or below one of `paths` changed.
    fn put_within(&self, paths: &[PathBuf], result: DebounceEventResult) {
        let within = |event: &DebouncedEvent| {
            let touched = event.paths.iter().any(|path| paths.iter().any(|watched| path.starts_with(watched)));
            event.need_rescan() || (touched && is_change(event.kind))
        };
        if result.map_or(true, |events| events.iter().any(within)) {
            self.changes.lock().unwrap_or_else(PoisonError::into_inner).any = true;
            self.news.notify_one();
        }
    }
}

/// Reading makes access events: only the end of a write is news.
fn is_change(kind: EventKind) -> bool {
    !matches!(kind, EventKind::Access(kind) if kind != AccessKind::Close(AccessMode::Write))
}

impl Pending {
    fn add(&mut self, folder: &Path, event: &DebouncedEvent) {
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
            "cannot watch the plugin folder: too many watches; raise fs.inotify.max_user_watches".to_owned()
        }
        notify::ErrorKind::Io(io) if io.raw_os_error() == Some(24) => {
            "cannot watch the plugin folder: too many open files; raise fs.inotify.max_user_instances or ulimit -n"
                .to_owned()
        }
        _ => format!("cannot watch the plugin folder: {error}"),
    }
}
