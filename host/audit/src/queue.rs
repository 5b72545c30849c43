//! Takes events from any thread, within a bound of memory and of time.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel, sync_channel};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, SystemTime};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::error::AuditError;
use crate::event::Event;
use crate::journal::Journal;
use crate::writer::{Message, Shared, Writer};

/// Bytes that may wait to be written.
const ROOM: usize = 4 << 20;

/// How long a call waits for room. After a wait in vain, no other call waits until something was written.
const PATIENCE: Duration = Duration::from_millis(100);

/// How the log is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The folder; it is created if it does not exist.
    pub folder: PathBuf,
    /// Largest size of one file, in bytes.
    pub size: u64,
    /// Files that are kept, at least 2.
    pub files: usize,
    /// Time between two signatures within the log, while lines are added.
    pub checkpoint: Duration,
}

/// The audit log of a server. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Audit {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    queue: Sender<Message>,
    room: Arc<Semaphore>,
    patience: Duration,
    shared: Arc<Shared>,
    calls: AtomicU64,
    ended: OnceLock<()>,
}

impl Audit {
    /// Opens the log, and starts the thread that writes it. Blocks.
    ///
    /// # Errors
    ///
    /// The folder cannot be used, others could change it, another server writes to it, or its key is missing.
    pub fn open(settings: &Settings) -> Result<Self, AuditError> {
        let journal = Journal::open(&settings.folder, settings.size, settings.files)?;
        let (audit, writer) = Self::of(journal, settings.checkpoint, ROOM, PATIENCE);
        let thread = thread::Builder::new().name("toolbay-audit".to_owned());
        let started = thread.spawn(move || writer.run());
        started.map_err(|error| AuditError(format!("cannot start the thread of the audit log: {error}")))?;
        Ok(audit)
    }

    fn of(journal: Journal, every: Duration, room: usize, patience: Duration) -> (Self, Writer) {
        let (queue, receiver) = channel();
        let shared = Arc::<Shared>::default();
        let writer = Writer::new(journal, receiver, Arc::clone(&shared), every);
        let (room, calls) = (Arc::new(Semaphore::new(room)), AtomicU64::new(0));
        (Self { inner: Arc::new(Inner { queue, room, patience, shared, calls, ended: OnceLock::new() }) }, writer)
    }

    /// The number of the next call.
    pub fn number(&self) -> u64 {
        self.inner.calls.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Records an event without waiting: if the queue is full, the event is lost, and the log says so.
    pub fn note(&self, event: Event) {
        let event = event.bounded();
        match Arc::clone(&self.inner.room).try_acquire_many_owned(event.weight()) {
            Ok(room) => self.send(event, room),
            Err(_) => self.lose(),
        }
    }

    /// Records an event. Waits for room in the queue, for a tenth of a second at most; then the event is lost, and the log
    /// says so.
    pub async fn record(&self, event: Event) {
        let event = event.bounded();
        let (room, weight) = (&self.inner.room, event.weight());
        if let Ok(room) = Arc::clone(room).try_acquire_many_owned(weight) {
            return self.send(event, room);
        }
        if self.inner.shared.stalled.load(Ordering::Relaxed) {
            return self.lose();
        }
        if let Ok(Ok(room)) = timeout(self.inner.patience, Arc::clone(room).acquire_many_owned(weight)).await {
            return self.send(event, room);
        }
        self.inner.shared.stalled.store(true, Ordering::Relaxed);
        self.lose();
    }

    /// Writes what is in the queue, and that the server ended. Waits for that, for `patience` at most. Nothing is recorded
    /// afterwards.
    pub fn end(&self, patience: Duration) {
        if self.inner.ended.set(()).is_err() {
            return;
        }
        let (ended, wait) = sync_channel(1);
        if self.inner.queue.send(Message::End(ended)).is_ok() && wait.recv_timeout(patience).is_err() {
            tracing::error!("the audit log could not be ended in time; its last lines may be missing");
        }
    }

    fn send(&self, event: Event, room: OwnedSemaphorePermit) {
        // Fails only after the end.
        drop(self.inner.queue.send(Message::Record(Box::new((SystemTime::now(), event)), room)));
    }

    fn lose(&self) {
        self.inner.shared.lost.fetch_add(1, Ordering::Relaxed);
        self.inner.shared.lost_ever.fetch_add(1, Ordering::Relaxed);
    }

    /// How many records were lost since the log was opened: the queue was full, or the disk.
    pub fn lost(&self) -> u64 {
        self.inner.shared.lost_ever.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::PluginRecord;
    use crate::journal::tests::open;
    use crate::verify::verify;

    fn event(text: &str) -> Event {
        let plugin = PluginRecord { plugin: "p".to_owned(), ..PluginRecord::default() };
        Event::Refused { plugin, why: text.to_owned() }
    }

    #[tokio::test]
    async fn a_writer_that_does_not_write_holds_up_nobody_for_long_and_the_log_says_what_is_missing() {
        let dir = tempfile::tempdir().unwrap();
        let room = event("").weight() as usize * 3;
        let (audit, writer) = Audit::of(open(dir.path()), Duration::from_mins(1), room, Duration::from_millis(1));
        for n in 0..10 {
            audit.note(event(""));
            audit.record(event("")).await;
            assert_eq!(audit.inner.shared.stalled.load(Ordering::Relaxed), n > 0);
        }
        assert_eq!(audit.lost(), 17);
        let writing = thread::spawn(move || writer.run());
        audit.end(Duration::from_mins(1));
        writing.join().unwrap();
        let report = verify(dir.path(), None, None).unwrap();
        // The start, three events, what is missing, the end and its signature.
        assert_eq!((report.lost, report.lines, report.is_intact()), (17, 7, true), "{report:?}");
    }

    #[tokio::test]
    async fn what_many_record_at_once_is_all_there() {
        let dir = tempfile::tempdir().unwrap();
        let settings =
            Settings { folder: dir.path().to_owned(), size: 1 << 20, files: 9, checkpoint: Duration::from_millis(1) };
        let audit = Audit::open(&settings).unwrap();
        let tasks = (0..8).map(|_| {
            let audit = audit.clone();
            tokio::spawn(async move {
                for _ in 0..500 {
                    audit.record(event("x")).await;
                }
            })
        });
        for task in tasks.collect::<Vec<_>>() {
            task.await.unwrap();
        }
        audit.end(Duration::from_mins(1));
        audit.end(Duration::ZERO);
        audit.note(event("after the end"));
        let report = verify(dir.path(), None, None).unwrap();
        assert!(report.is_intact() && report.lines >= 4_000 + 3, "{report:?}");
    }
}
