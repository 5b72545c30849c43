//! The writer thread, which takes events from the queue in batches. If the disk fails, the thread
//! retains the events and retries, or counts them and records the loss in the log.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::OwnedSemaphorePermit;
use toolbay_background::{BatchSpace, BatchWriter};

use crate::event::AuditEvent;
use crate::part::LogPart;
use crate::part_writer::{PartWriter, TimedEvent};
use crate::rejection_series::SeriesTable;

/// Maximum number of records in a batch.
const MAX_BATCH: usize = 4_096;

/// Backoff after a failed write. Also the delay before lost lines are reported if nothing else is
/// written.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// Maximum time between two checks for lost records.
const MAX_PAUSE: Duration = Duration::from_mins(1);

/// A message to the thread.
#[derive(Debug)]
pub(crate) enum WriterMessage {
    /// A record, and its queue space.
    Record(Box<TimedEvent>, OwnedSemaphorePermit),
    /// A rejection was counted, and its line is due later.
    RejectionCounted,
}

/// State shared by the thread and the callers that record events.
#[derive(Debug, Default)]
pub(crate) struct WriterState {
    /// Records of the main part that did not fit in the queue and that the log does not report yet.
    main_lost: AtomicU64,
    /// Records of the part with rejections that did not fit in the queue and that the log does not
    /// report yet.
    rejected_lost: AtomicU64,
    /// Number of records lost since the log was opened, reported or not.
    pub total_lost: AtomicU64,
    /// True if a record timed out while waiting for space and nothing has been written since.
    pub stalled: AtomicBool,
    /// True if the last write of the main part failed.
    pub failing: AtomicBool,
    /// Repeated rejections.
    pub series: Mutex<SeriesTable>,
    /// A mutex that simulates a stalled disk: nothing is written while it is locked.
    #[cfg(test)]
    pub disk: tokio::sync::Mutex<()>,
    /// If set, simulates a full disk.
    #[cfg(test)]
    pub full: AtomicBool,
}

impl WriterState {
    /// Locks and returns the repeated rejections.
    pub(crate) fn lock_series(&self) -> MutexGuard<'_, SeriesTable> {
        self.series.lock()
    }

    /// Returns the counter of the records of a part that did not fit in the queue and that the log
    /// does not report yet.
    pub(crate) fn lost_counter(&self, part: LogPart) -> &AtomicU64 {
        match part {
            LogPart::Main => &self.main_lost,
            LogPart::Rejected => &self.rejected_lost,
        }
    }
}

/// A record, and its queue space until it is written; `None` if it uses none.
type QueuedEvent = (TimedEvent, Option<OwnedSemaphorePermit>);

/// A part of the log and its pending records.
#[derive(Debug)]
struct PartChain {
    part: LogPart,
    writer: PartWriter,
    /// Records that are not written yet, oldest first.
    pending: VecDeque<QueuedEvent>,
    /// Number of lines that could not be written and that the log does not report yet.
    unreported: u64,
    /// True if the last write failed.
    failing: bool,
}

/// The state of the writer thread.
#[derive(Debug)]
pub(crate) struct LogWriter {
    main: PartChain,
    rejected: PartChain,
    /// Number of messages in the current batch.
    batch_len: usize,
    shared: Arc<WriterState>,
    /// If set, records that cannot be written are retained until they can.
    retains_records: bool,
    /// Time of the next attempt to write retained records; `None` if there are none.
    retry_at: Option<Instant>,
    /// Interval between two checkpoints.
    checkpoint_interval: Duration,
    /// Time of the next checkpoint; `None` if there is nothing to sign.
    checkpoint_at: Option<Instant>,
}

impl LogWriter {
    /// Creates a writer that adds a checkpoint after each `checkpoint_interval`. If
    /// `retains_records` is set, records that cannot be written are retained; otherwise they are
    /// lost and counted.
    pub(crate) fn new(
        [main, rejected]: [PartWriter; 2],
        shared: Arc<WriterState>,
        checkpoint_interval: Duration,
        retains_records: bool,
    ) -> Self {
        let chain = |part, writer| PartChain {
            part,
            writer,
            pending: VecDeque::new(),
            unreported: 0,
            failing: false,
        };
        let main = chain(LogPart::Main, main);
        let rejected = chain(LogPart::Rejected, rejected);
        let checkpoint_at = Some(Instant::now() + checkpoint_interval);
        Self {
            main,
            rejected,
            batch_len: 0,
            shared,
            retains_records,
            retry_at: None,
            checkpoint_interval,
            checkpoint_at,
        }
    }

    fn enqueue(&mut self, record: TimedEvent, permit: Option<OwnedSemaphorePermit>) {
        let chain = match record.1.part() {
            LogPart::Main => &mut self.main,
            LogPart::Rejected => &mut self.rejected,
        };
        chain.pending.push_back((record, permit));
    }

    /// Queues the lines for counted rejections if they are due, or if the log ends.
    fn enqueue_counted(&mut self, is_final: bool) {
        // Counted rejections use no queue space. While nothing can be written, they continue to be
        // counted.
        if self.rejected.failing && !is_final {
            return;
        }
        let records = self.shared.lock_series().take_due(is_final);
        for record in records {
            self.enqueue((SystemTime::now(), AuditEvent::Rejected(record)), None);
        }
    }

    /// Writes the pending records. Writes the part with rejections first, because the main part
    /// refers to its newest line.
    fn write(&mut self) {
        #[cfg(test)]
        drop(self.shared.disk.blocking_lock());
        self.enqueue_counted(false);
        self.write_pending();
    }

    fn write_pending(&mut self) {
        let mut written = self.rejected.write(&self.shared, self.retains_records);
        self.main
            .writer
            .set_rejected_anchor(self.rejected.writer.newest_line());
        written |= self.main.write(&self.shared, self.retains_records);
        self.shared
            .failing
            .store(self.main.failing, Ordering::Relaxed);
        let has_pending = !self.main.pending.is_empty() || !self.rejected.pending.is_empty();
        self.retry_at = has_pending.then(|| Instant::now() + RETRY_INTERVAL);
        if written {
            // While lines are retained, the queue has no space yet.
            self.shared.stalled.store(
                self.retains_records && has_pending && self.shared.stalled.load(Ordering::Relaxed),
                Ordering::Relaxed,
            );
            self.checkpoint_at = self
                .checkpoint_at
                .or_else(|| Some(Instant::now() + self.checkpoint_interval));
        }
    }

    fn sign_if_due(&mut self) {
        if self.checkpoint_at.is_none_or(|due| due > Instant::now()) {
            return;
        }
        self.checkpoint_at = None;
        let rejected = self.rejected.writer.checkpoint();
        self.main
            .writer
            .set_rejected_anchor(self.rejected.writer.newest_line());
        if let Err(error) = rejected.and(self.main.writer.checkpoint()) {
            tracing::debug!("the audit log cannot be signed now: {error}");
            self.checkpoint_at = Some(Instant::now() + self.checkpoint_interval);
        }
    }
}

impl BatchWriter for LogWriter {
    type Item = WriterMessage;

    fn next_timeout(&self) -> Option<Duration> {
        if let Some(retry_at) = self.retry_at {
            return Some(retry_at.saturating_duration_since(Instant::now()));
        }
        if self.main.unreported > 0
            || self.rejected.unreported > 0
            || LogPart::ALL
                .iter()
                .any(|part| self.shared.lost_counter(*part).load(Ordering::Relaxed) > 0)
        {
            return Some(RETRY_INTERVAL);
        }
        let next = self
            .checkpoint_at
            .into_iter()
            .chain(self.shared.lock_series().next_report())
            .min();
        let pause = next.map_or(MAX_PAUSE, |due| {
            due.saturating_duration_since(Instant::now()).min(MAX_PAUSE)
        });
        Some(pause)
    }

    fn add(&mut self, message: WriterMessage) -> BatchSpace {
        match message {
            WriterMessage::Record(record, permit) => self.enqueue(*record, Some(permit)),
            WriterMessage::RejectionCounted => {}
        }
        self.batch_len += 1;
        if self.batch_len < MAX_BATCH {
            BatchSpace::More
        } else {
            BatchSpace::Full
        }
    }

    fn write_batch(&mut self) -> ControlFlow<()> {
        self.batch_len = 0;
        if self
            .retry_at
            .is_none_or(|retry_at| retry_at <= Instant::now())
        {
            self.write();
        }
        self.sign_if_due();
        ControlFlow::Continue(())
    }

    fn end(&mut self) {
        self.enqueue_counted(true);
        // There is no further attempt.
        self.retains_records = false;
        self.write_pending();
        self.rejected.end();
        self.main
            .writer
            .set_rejected_anchor(self.rejected.writer.newest_line());
        self.main.end();
    }
}

impl PartChain {
    /// Writes the pending records, preceded by a notice of records lost on the disk and followed by
    /// a notice of records that did not fit in the queue. Records that cannot be written are
    /// retained or lost. Returns whether there was anything to write.
    fn write(&mut self, shared: &WriterState, retains_records: bool) -> bool {
        let lost_event = |lines, reason| {
            (
                (SystemTime::now(), AuditEvent::Lost { lines, reason }),
                None,
            )
        };
        // While the disk fails, losses are only counted.
        if !self.failing || !retains_records {
            if self.unreported > 0 {
                self.pending
                    .push_front(lost_event(std::mem::take(&mut self.unreported), "disk"));
            }
            let unqueued = shared.lost_counter(self.part).swap(0, Ordering::Relaxed);
            if unqueued > 0 {
                self.pending.push_back(lost_event(unqueued, "queue"));
            }
        }
        if self.pending.is_empty() {
            return false;
        }
        let replaced = self
            .writer
            .replace_if_deleted()
            .map_err(|error| (self.pending.len(), error));
        #[cfg(test)]
        let replaced = if shared.full.load(Ordering::Relaxed) {
            Err((self.pending.len(), std::io::ErrorKind::StorageFull.into()))
        } else {
            replaced
        };
        let records = self.pending.iter().map(|(record, _)| record);
        let failure = replaced.and_then(|()| self.writer.append(records)).err();
        let written = self.pending.len() - failure.as_ref().map_or(0, |(count, _)| *count);
        for ((_, event), _) in self.pending.drain(..written) {
            if let AuditEvent::Lost { lines, reason } = event {
                tracing::warn!(
                    lines,
                    "lines of the audit log were lost; the log records the loss ({reason})"
                );
            }
        }
        if !retains_records {
            self.drop_pending(shared);
        }
        match failure {
            Some((_, error)) if !self.failing => {
                self.failing = true;
                let handling = if retains_records {
                    "kept in memory, within a bound, and written later"
                } else {
                    "lost and counted"
                };
                tracing::error!("cannot write the audit log: {error}; lines are {handling}");
            }
            None if self.failing => {
                self.failing = false;
                tracing::info!("the audit log can be written again");
            }
            _ => {}
        }
        true
    }

    /// Counts the pending records as lost.
    fn drop_pending(&mut self, shared: &WriterState) {
        let mut unwritten = 0;
        let mut new = 0;
        for ((_, event), _) in self.pending.drain(..) {
            match event {
                // These lines were counted when they were lost.
                AuditEvent::Lost { lines, .. } => unwritten += lines,
                _ => new += 1,
            }
        }
        self.unreported += unwritten + new;
        shared.total_lost.fetch_add(new, Ordering::Relaxed);
    }

    fn end(&mut self) {
        if let Err(error) = self.writer.end() {
            tracing::error!("cannot write the end of the audit log: {error}");
        }
        if self.unreported > 0 {
            tracing::error!(
                lines = self.unreported,
                "lines of the audit log were lost, and the log does not record the loss"
            );
        }
    }
}
