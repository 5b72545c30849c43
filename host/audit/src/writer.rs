//! The thread that writes: takes records from the queue, several at once, and says in the log itself what it lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender};
use std::time::{Duration, Instant, SystemTime};

use tokio::sync::OwnedSemaphorePermit;

use crate::event::Event;
use crate::journal::{Journal, Record};

/// Records that are written at once at most.
const BATCH: usize = 4_096;

/// Pause before lines that could not be written are reported again, if nothing else is written before.
const RETRY: Duration = Duration::from_secs(1);

/// Longest pause without a look at what was lost.
const LOOK: Duration = Duration::from_mins(1);

/// What reaches the thread.
#[derive(Debug)]
pub(crate) enum Message {
    /// A record, and the room that it takes in the queue.
    Record(Box<Record>, OwnedSemaphorePermit),
    /// The log ends. The answer says that it has.
    End(SyncSender<()>),
}

/// What the thread and those who record share.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    /// Records that found no room in the queue, and of which the log does not know yet.
    pub lost: AtomicU64,
    /// Records that the log lost since it was opened, whether it knows of them or not.
    pub lost_ever: AtomicU64,
    /// A record waited for room in vain, and nothing has been written since.
    pub stalled: AtomicBool,
}

/// What the thread works with.
#[derive(Debug)]
pub(crate) struct Writer {
    journal: Journal,
    queue: Receiver<Message>,
    shared: Arc<Shared>,
    /// Time between two checkpoints.
    every: Duration,
    /// The time of the next checkpoint; `None` if there is nothing to sign.
    due: Option<Instant>,
    /// Lines that could not be written, and of which the log does not know yet.
    unwritten: u64,
    /// Whether the last write failed.
    failing: bool,
}

impl Writer {
    /// A writer of what comes out of `queue`, with a checkpoint `every` so often.
    pub(crate) fn new(journal: Journal, queue: Receiver<Message>, shared: Arc<Shared>, every: Duration) -> Self {
        Self { journal, queue, shared, every, due: Some(Instant::now() + every), unwritten: 0, failing: false }
    }

    /// Writes until the log ends.
    pub(crate) fn run(mut self) {
        loop {
            let (mut records, mut room, mut end) = (Vec::new(), Vec::new(), None);
            let mut next = match self.queue.recv_timeout(self.pause()) {
                Ok(message) => Some(message),
                Err(RecvTimeoutError::Timeout) => None,
                // Everybody who could record something is gone.
                Err(RecvTimeoutError::Disconnected) => return self.end(),
            };
            while let Some(message) = next {
                match message {
                    Message::Record(record, taken) => {
                        records.push(*record);
                        room.push(taken);
                    }
                    Message::End(ended) => {
                        end = Some(ended);
                        break;
                    }
                }
                next = if records.len() < BATCH { self.queue.try_recv().ok() } else { None };
            }
            self.write(records);
            drop(room);
            if let Some(ended) = end {
                self.end();
                let _ = ended.try_send(());
                return;
            }
            self.sign_if_due();
        }
    }

    /// How long to wait for the next record.
    fn pause(&self) -> Duration {
        if self.unwritten > 0 {
            return RETRY;
        }
        self.due.map_or(LOOK, |due| due.saturating_duration_since(Instant::now()).min(LOOK))
    }

    /// Writes records, between notices of what was lost before them and what found no room after them.
    fn write(&mut self, mut records: Vec<Record>) {
        let lost = |lines, why| (SystemTime::now(), Event::Lost { lines, why });
        if self.unwritten > 0 {
            records.insert(0, lost(std::mem::take(&mut self.unwritten), "disk"));
        }
        let unqueued = self.shared.lost.swap(0, Ordering::Relaxed);
        if unqueued > 0 {
            records.push(lost(unqueued, "queue"));
        }
        if records.is_empty() {
            return;
        }
        let replaced = self.journal.replace_if_deleted().map_err(|error| (records.len(), error));
        let failed = replaced.and_then(|()| self.journal.append(&records)).err();
        let written = records.len() - failed.as_ref().map_or(0, |(count, _)| *count);
        for (_, event) in records.iter().take(written) {
            if let Event::Lost { lines, why } = event {
                tracing::warn!(lines, "lines of the audit log were lost; the log says so ({why})");
            }
        }
        let (mut unwritten, mut new) = (0, 0);
        for (_, event) in records.iter().skip(written) {
            match event {
                // These were counted when they were lost.
                Event::Lost { lines, .. } => unwritten += lines,
                _ => new += 1,
            }
        }
        self.unwritten = unwritten + new;
        self.shared.lost_ever.fetch_add(new, Ordering::Relaxed);
        self.shared.stalled.store(false, Ordering::Relaxed);
        self.due = self.due.or_else(|| Some(Instant::now() + self.every));
        match failed {
            Some((_, error)) if !self.failing => {
                self.failing = true;
                tracing::error!(
                    "cannot write the audit log: {error}; serving continues, and the lines that are lost are counted"
                );
            }
            None if self.failing => {
                self.failing = false;
                tracing::info!("the audit log can be written again");
            }
            _ => {}
        }
    }

    fn sign_if_due(&mut self) {
        if self.due.is_none_or(|due| due > Instant::now()) {
            return;
        }
        self.due = None;
        if let Err(error) = self.journal.checkpoint() {
            tracing::debug!("the audit log cannot be signed now: {error}");
            self.due = Some(Instant::now() + self.every);
        }
    }

    fn end(&mut self) {
        if let Err(error) = self.journal.end() {
            tracing::error!("cannot write the end of the audit log: {error}");
        }
        if self.unwritten > 0 {
            tracing::error!(lines = self.unwritten, "lines of the audit log were lost, and the log does not say so");
        }
    }
}
