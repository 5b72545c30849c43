//! The thread that writes: takes records from the queue, several at once. With a disk that takes nothing it keeps them and tries
//! again, or counts them and says in the log itself what it lost.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use tokio::sync::OwnedSemaphorePermit;

use crate::event::AuditEvent;
use crate::journal::{PartWriter, TimedEvent};
use crate::part::LogPart;
use crate::series::SeriesTable;

/// Records that are written at once at most.
const BATCH: usize = 4_096;

/// Pause after a write that failed, and before lines that were lost are reported, if nothing else is written before.
const RETRY: Duration = Duration::from_secs(1);

/// Longest pause without a look at what was lost.
const LOOK: Duration = Duration::from_mins(1);

/// What reaches the thread.
#[derive(Debug)]
pub(crate) enum WriterMessage {
    /// A record, and the room that it takes in the queue.
    Record(Box<TimedEvent>, OwnedSemaphorePermit),
    /// Something was counted, of which a line is due in a while.
    Counted,
    /// The log ends. The answer says that it has.
    End(SyncSender<()>),
}

/// What the thread and those who record share.
#[derive(Debug, Default)]
pub(crate) struct WriterState {
    /// Records of the main part that found no room in the queue, and of which the log does not know yet.
    main_lost: AtomicU64,
    /// The same of the other part.
    rejected_lost: AtomicU64,
    /// Records that the log lost since it was opened, whether it knows of them or not.
    pub lost_ever: AtomicU64,
    /// A record waited for room in vain, and nothing has been written since.
    pub stalled: AtomicBool,
    /// The last write of the main part failed.
    pub failing: AtomicBool,
    /// Rejections that repeat.
    pub series: Mutex<SeriesTable>,
    /// A disk that stalls: nothing is written while it is locked.
    #[cfg(test)]
    pub disk: tokio::sync::Mutex<()>,
    /// A disk that is full.
    #[cfg(test)]
    pub full: AtomicBool,
}

impl WriterState {
    /// Rejections that repeat.
    pub(crate) fn series(&self) -> MutexGuard<'_, SeriesTable> {
        self.series.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records of a part that found no room in the queue, and of which the log does not know yet.
    pub(crate) fn lost(&self, part: LogPart) -> &AtomicU64 {
        match part {
            LogPart::Main => &self.main_lost,
            LogPart::Rejected => &self.rejected_lost,
        }
    }
}

/// A record, and the room that it takes in the queue until it is written; `None` if it takes none.
type QueuedEvent = (TimedEvent, Option<OwnedSemaphorePermit>);

/// A part of the log.
#[derive(Debug)]
struct PartChain {
    part: LogPart,
    journal: PartWriter,
    /// Records that are not written yet, the oldest first.
    held: VecDeque<QueuedEvent>,
    /// Lines that could not be written, and of which the log does not know yet.
    unwritten: u64,
    /// Whether the last write failed.
    failing: bool,
}

/// What the thread works with.
#[derive(Debug)]
pub(crate) struct LogWriter {
    main: PartChain,
    rejected: PartChain,
    queue: Receiver<WriterMessage>,
    shared: Arc<WriterState>,
    /// Whether records that cannot be written are kept until they can.
    keeps: bool,
    /// The time of the next attempt to write what is kept; `None` if nothing is.
    again: Option<Instant>,
    /// Time between two checkpoints.
    every: Duration,
    /// The time of the next checkpoint; `None` if there is nothing to sign.
    due: Option<Instant>,
}

impl LogWriter {
    /// A writer of what comes out of `queue`, with a checkpoint after each period of `every`. `keeps` says whether records that cannot be
    /// written are kept, or lost and counted.
    pub(crate) fn new(
        [main, rejected]: [PartWriter; 2],
        queue: Receiver<WriterMessage>,
        shared: Arc<WriterState>,
        every: Duration,
        keeps: bool,
    ) -> Self {
        let chain = |part, journal| PartChain { part, journal, held: VecDeque::new(), unwritten: 0, failing: false };
        let (main, rejected) = (chain(LogPart::Main, main), chain(LogPart::Rejected, rejected));
        let due = Some(Instant::now() + every);
        Self { main, rejected, queue, shared, keeps, again: None, every, due }
    }

    /// Writes until the log ends.
    pub(crate) fn run(mut self) {
        loop {
            let mut next = match self.queue.recv_timeout(self.pause()) {
                Ok(message) => Some(message),
                Err(RecvTimeoutError::Timeout) => None,
                // Everybody who could record something is gone.
                Err(RecvTimeoutError::Disconnected) => return self.end(),
            };
            let mut taken = 0;
            while let Some(message) = next {
                match message {
                    WriterMessage::Record(record, room) => self.hold(*record, Some(room)),
                    WriterMessage::Counted => {}
                    WriterMessage::End(ended) => {
                        self.end();
                        let _ = ended.try_send(());
                        return;
                    }
                }
                taken += 1;
                next = if taken < BATCH { self.queue.try_recv().ok() } else { None };
            }
            if self.again.is_none_or(|again| again <= Instant::now()) {
                self.write();
            }
            self.sign_if_due();
        }
    }

    /// How long to wait for the next record.
    fn pause(&self) -> Duration {
        if let Some(again) = self.again {
            return again.saturating_duration_since(Instant::now());
        }
        if self.main.unwritten > 0
            || self.rejected.unwritten > 0
            || LogPart::ALL.iter().any(|part| self.shared.lost(*part).load(Ordering::Relaxed) > 0)
        {
            return RETRY;
        }
        let next = self.due.into_iter().chain(self.shared.series().due()).min();
        next.map_or(LOOK, |due| due.saturating_duration_since(Instant::now()).min(LOOK))
    }

    fn hold(&mut self, record: TimedEvent, room: Option<OwnedSemaphorePermit>) {
        let chain = match record.1.part() {
            LogPart::Main => &mut self.main,
            LogPart::Rejected => &mut self.rejected,
        };
        chain.held.push_back((record, room));
    }

    /// Holds the lines about what was counted, if they are due, or if the log ends.
    fn hold_counted(&mut self, ends: bool) {
        // What is counted takes no room in the queue. While nothing can be written, it goes on to be counted.
        if self.rejected.failing && !ends {
            return;
        }
        let counted = self.shared.series().take(ends);
        for counted in counted {
            self.hold((SystemTime::now(), AuditEvent::Rejected(counted)), None);
        }
    }

    /// Writes what is held, the part with rejections first: what the other one says of it is there.
    fn write(&mut self) {
        #[cfg(test)]
        drop(self.shared.disk.blocking_lock());
        self.hold_counted(false);
        self.write_held();
    }

    fn write_held(&mut self) {
        let mut written = self.rejected.write(&self.shared, self.keeps);
        self.main.journal.anchor(self.rejected.journal.end_of());
        written |= self.main.write(&self.shared, self.keeps);
        self.shared.failing.store(self.main.failing, Ordering::Relaxed);
        let left = !self.main.held.is_empty() || !self.rejected.held.is_empty();
        self.again = left.then(|| Instant::now() + RETRY);
        if written {
            // While lines are kept, there is no room yet.
            self.shared
                .stalled
                .store(self.keeps && left && self.shared.stalled.load(Ordering::Relaxed), Ordering::Relaxed);
            self.due = self.due.or_else(|| Some(Instant::now() + self.every));
        }
    }

    fn sign_if_due(&mut self) {
        if self.due.is_none_or(|due| due > Instant::now()) {
            return;
        }
        self.due = None;
        let rejected = self.rejected.journal.checkpoint();
        self.main.journal.anchor(self.rejected.journal.end_of());
        if let Err(error) = rejected.and(self.main.journal.checkpoint()) {
            tracing::debug!("the audit log cannot be signed now: {error}");
            self.due = Some(Instant::now() + self.every);
        }
    }

    fn end(&mut self) {
        self.hold_counted(true);
        // There is no other attempt.
        self.keeps = false;
        self.write_held();
        self.rejected.end();
        self.main.journal.anchor(self.rejected.journal.end_of());
        self.main.end();
    }
}

impl PartChain {
    /// Writes what is held, between notices of what was lost before it and what found no room after it. What cannot be written
    /// stays, or is lost. Returns whether there was anything to write.
    fn write(&mut self, shared: &WriterState, keeps: bool) -> bool {
        let lost = |lines, why| ((SystemTime::now(), AuditEvent::Lost { lines, why }), None);
        // While the disk takes nothing, they are counted and not held.
        if !self.failing || !keeps {
            if self.unwritten > 0 {
                self.held.push_front(lost(std::mem::take(&mut self.unwritten), "disk"));
            }
            let unqueued = shared.lost(self.part).swap(0, Ordering::Relaxed);
            if unqueued > 0 {
                self.held.push_back(lost(unqueued, "queue"));
            }
        }
        if self.held.is_empty() {
            return false;
        }
        let replaced = self.journal.replace_if_deleted().map_err(|error| (self.held.len(), error));
        #[cfg(test)]
        let replaced = if shared.full.load(Ordering::Relaxed) {
            Err((self.held.len(), std::io::ErrorKind::StorageFull.into()))
        } else {
            replaced
        };
        let records = self.held.iter().map(|(record, _)| record);
        let failed = replaced.and_then(|()| self.journal.append(records)).err();
        let written = self.held.len() - failed.as_ref().map_or(0, |(count, _)| *count);
        for ((_, event), _) in self.held.drain(..written) {
            if let AuditEvent::Lost { lines, why } = event {
                tracing::warn!(lines, "lines of the audit log were lost; the log says so ({why})");
            }
        }
        if !keeps {
            self.lose(shared);
        }
        match failed {
            Some((_, error)) if !self.failing => {
                self.failing = true;
                let then = if keeps { "kept in memory, within a bound, and written later" } else { "lost and counted" };
                tracing::error!("cannot write the audit log: {error}; lines are {then}");
            }
            None if self.failing => {
                self.failing = false;
                tracing::info!("the audit log can be written again");
            }
            _ => {}
        }
        true
    }

    /// Counts what is held as lost.
    fn lose(&mut self, shared: &WriterState) {
        let (mut unwritten, mut new) = (0, 0);
        for ((_, event), _) in self.held.drain(..) {
            match event {
                // These were counted when they were lost.
                AuditEvent::Lost { lines, .. } => unwritten += lines,
                _ => new += 1,
            }
        }
        self.unwritten += unwritten + new;
        shared.lost_ever.fetch_add(new, Ordering::Relaxed);
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
