//! The queue of events, which accepts events from any thread within bounds on memory and waiting
//! time.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use toolbay_background::{BackgroundQueue, BackgroundWriter};

use crate::error::AuditError;
use crate::event::{AuditEvent, CallRecord, RECORD_OVERHEAD_BYTES, RejectedRecord};
use crate::part::LogPart;
use crate::part_writer::PartWriter;
use crate::writer::{LogWriter, WriterMessage, WriterState};

/// Capacity of the queue for events of calls, in bytes, in addition to the reservations of running
/// calls.
const CALL_QUEUE_CAPACITY_BYTES: usize = 16 << 20;

/// Queue capacity for each concurrent call, in bytes. While the disk keeps up, no call has to wait.
const CAPACITY_PER_CALL_BYTES: usize = 32 << 10;

/// Capacity of the queue for other events, in bytes. Calls cannot use it.
const SERVER_QUEUE_CAPACITY_BYTES: usize = 4 << 20;

/// Maximum time that a call waits for queue space with [`WhenFull::Drop`]. After a timeout, calls
/// no longer wait, until the thread has written something.
const DROP_TIMEOUT: Duration = Duration::from_millis(100);

/// Time that a call waits before the server's own log reports it.
const STALL_REPORT_DELAY: Duration = Duration::from_secs(1);

/// The behavior of calls while the log cannot accept their lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhenFull {
    /// Calls wait for queue space, up to their deadline. Lines that cannot be written are retained
    /// until they can.
    #[default]
    Wait,
    /// Calls are refused while the queue is full or the disk accepts no writes. Lines of earlier
    /// calls are retained.
    Refuse,
    /// Calls continue, and their lines are lost.
    Drop,
}

/// Queue space reserved for the lines of one call. From a semaphore, because calls wait for space in
/// order.
#[derive(Debug)]
pub struct QueueReservation(OwnedSemaphorePermit);

/// The settings of an audit log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditSettings {
    /// The directory, which is created if it does not exist.
    pub folder: PathBuf,
    /// Maximum size of a file, in bytes.
    pub max_file_bytes: u64,
    /// Number of files of the main part that are retained, at least 2.
    pub files: usize,
    /// Number of files of the part with rejections that are retained, at least 2.
    pub rejected_files: usize,
    /// Interval between two signatures within the log while lines are added.
    pub checkpoint_interval: Duration,
    /// The behavior of calls while the log cannot accept their lines.
    pub when_full: WhenFull,
}

/// The audit log of a server. Cheap to clone.
#[derive(Clone, Debug)]
pub struct AuditLog {
    inner: Arc<AuditQueue>,
}

#[derive(Debug)]
struct AuditQueue {
    queue: BackgroundQueue<WriterMessage>,
    call_capacity: Arc<Semaphore>,
    server_capacity: Arc<Semaphore>,
    when_full: WhenFull,
    drop_timeout: Duration,
    writer_state: Arc<WriterState>,
    last_call_number: AtomicU64,
}

impl AuditLog {
    /// Opens the log of a server that runs at most `max_calls` calls concurrently, and starts the
    /// writer thread. Blocks.
    ///
    /// # Errors
    ///
    /// Returns an error if the directory cannot be used, other users could change it, another
    /// server writes to it, or its key is missing.
    pub fn open(settings: &AuditSettings, max_calls: usize) -> Result<Self, AuditError> {
        let max_files = [settings.files, settings.rejected_files];
        let part_writers = PartWriter::open(&settings.folder, settings.max_file_bytes, max_files)?;
        let queue_bytes = max_calls
            .saturating_mul(CAPACITY_PER_CALL_BYTES)
            .saturating_add(CALL_QUEUE_CAPACITY_BYTES)
            .min(Semaphore::MAX_PERMITS);
        let (audit, writer) = Self::from_writers(
            part_writers,
            settings.checkpoint_interval,
            queue_bytes,
            DROP_TIMEOUT,
            settings.when_full,
        );
        writer.start("toolbay-audit").map_err(|error| {
            AuditError(format!("cannot start the thread of the audit log: {error}"))
        })?;
        Ok(audit)
    }

    fn from_writers(
        part_writers: [PartWriter; 2],
        checkpoint_interval: Duration,
        queue_bytes: usize,
        drop_timeout: Duration,
        when_full: WhenFull,
    ) -> (Self, BackgroundWriter<LogWriter>) {
        let writer_state = Arc::<WriterState>::default();
        let retains_records = when_full != WhenFull::Drop;
        let writer = LogWriter::new(
            part_writers,
            Arc::clone(&writer_state),
            checkpoint_interval,
            retains_records,
        );
        let (writer, queue) = BackgroundWriter::new(writer);
        let call_capacity = Arc::new(Semaphore::new(queue_bytes));
        let server_capacity = Arc::new(Semaphore::new(SERVER_QUEUE_CAPACITY_BYTES));
        let inner = AuditQueue {
            queue,
            call_capacity,
            server_capacity,
            when_full,
            drop_timeout,
            writer_state,
            last_call_number: AtomicU64::new(0),
        };
        (
            Self {
                inner: Arc::new(inner),
            },
            writer,
        )
    }

    /// Returns the number of the next call.
    pub fn next_call_number(&self) -> u64 {
        self.inner.last_call_number.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Records an event without waiting, in queue space that calls cannot use. If that is full, the
    /// event is lost and counted in the log.
    pub fn record_server_event(&self, event: AuditEvent) {
        let part = event.part();
        if !self.try_send(&self.inner.server_capacity, event) {
            self.count_lost(part);
        }
    }

    /// Records an event of a call without waiting. Returns whether the queue had space.
    pub fn try_record(&self, event: AuditEvent) -> bool {
        self.try_send(&self.inner.call_capacity, event)
    }

    /// Records an event of a call that has no reservation, without waiting. If the queue is full,
    /// the event is lost and counted in the log.
    pub fn record_now(&self, event: AuditEvent) {
        let part = event.part();
        if !self.try_send(&self.inner.call_capacity, event) {
            self.count_lost(part);
        }
    }

    /// Records an event of a call that has no reservation. Waits like [`AuditLog::reserve`], at
    /// most until `deadline`. After that, the event is lost and counted in the log.
    pub async fn record(&self, event: AuditEvent, deadline: Instant) {
        let part = event.part();
        match self.reserve(event.max_bytes(), deadline).await {
            Some(QueueReservation(permit)) => self.send(event.truncate_texts(), permit),
            None => self.count_lost(part),
        }
    }

    /// Reserves `bytes` bytes of queue space for all lines of a call. Waits according to
    /// [`WhenFull`], at most until `deadline`. Returns `None` if no space is available; the caller
    /// decides how to proceed.
    pub async fn reserve(&self, bytes: u32, deadline: Instant) -> Option<QueueReservation> {
        let capacity = &self.inner.call_capacity;
        let writer_state = &self.inner.writer_state;
        if self.inner.when_full == WhenFull::Refuse && writer_state.failing.load(Ordering::Relaxed)
        {
            return None;
        }
        if let Ok(permit) = Arc::clone(capacity).try_acquire_many_owned(bytes) {
            return Some(QueueReservation(permit));
        }
        let max_wait = match self.inner.when_full {
            WhenFull::Refuse => return None,
            WhenFull::Drop if writer_state.stalled.load(Ordering::Relaxed) => return None,
            WhenFull::Drop => self.inner.drop_timeout,
            WhenFull::Wait => deadline.saturating_duration_since(Instant::now()),
        };
        let waiting = Arc::clone(capacity).acquire_many_owned(bytes);
        tokio::pin!(waiting);
        let acquired = match timeout(max_wait.min(STALL_REPORT_DELAY), &mut waiting).await {
            Err(_) if max_wait > STALL_REPORT_DELAY => {
                if !writer_state.stalled.swap(true, Ordering::Relaxed) {
                    tracing::error!(
                        "the queue of the audit log is full, because its disk does not accept lines; calls wait until their deadline (audit.when_full)"
                    );
                }
                timeout(max_wait.saturating_sub(STALL_REPORT_DELAY), waiting).await
            }
            completed => completed,
        };
        let found = acquired.ok().and_then(Result::ok).map(QueueReservation);
        if found.is_none() {
            writer_state.stalled.store(true, Ordering::Relaxed);
        }
        found
    }

    /// Records an event in reserved space. The rest stays reserved. Records an event that exceeds
    /// the reservation like [`AuditLog::record_now`].
    pub fn record_reserved(&self, reserved: &mut QueueReservation, event: AuditEvent) {
        match reserved.0.split(event.max_bytes() as usize) {
            Some(permit) => self.send(event.truncate_texts(), permit),
            None => self.record_now(event),
        }
    }

    /// Returns the queue space that a call needs for its lines, in bytes. There are at most four:
    /// `event` at the end of the call, one about a limit, and two about approvals.
    pub fn reservation_bytes(event: &CallRecord) -> u32 {
        let arguments = event.arguments.text.as_ref().map_or(0, String::len);
        u32::try_from(4 * (RECORD_OVERHEAD_BYTES + event.subject.text_bytes()) + arguments)
            .unwrap_or(u32::MAX)
    }

    /// Records a rejected call. Records `events` if the call is the first of its series; otherwise
    /// counts it. Never waits and never loses a rejection.
    pub fn record_rejection(&self, series: &RejectedRecord, events: [Option<AuditEvent>; 2]) {
        if !self.inner.writer_state.lock_series().start_or_count(series) {
            return;
        }
        let bytes = events.iter().flatten().map(AuditEvent::max_bytes).sum();
        if let Ok(permit) = Arc::clone(&self.inner.call_capacity).try_acquire_many_owned(bytes) {
            let mut room = QueueReservation(permit);
            for event in events.into_iter().flatten() {
                self.record_reserved(&mut room, event);
            }
        } else {
            self.inner.writer_state.lock_series().count(series);
            drop(self.inner.queue.send(WriterMessage::RejectionCounted));
        }
    }

    /// Returns the behavior of calls while the log cannot accept their lines.
    pub fn when_full(&self) -> WhenFull {
        self.inner.when_full
    }

    /// Returns whether the queue had space.
    fn try_send(&self, capacity: &Arc<Semaphore>, event: AuditEvent) -> bool {
        let event = event.truncate_texts();
        let permit = Arc::clone(capacity).try_acquire_many_owned(event.max_bytes());
        permit.map(|room| self.send(event, room)).is_ok()
    }

    /// Writes the queued events and a stop line. Waits at most `max_wait` for that. Later events
    /// are not recorded.
    pub fn end(&self, max_wait: Duration) {
        if self.inner.queue.end(max_wait).is_err() {
            tracing::error!(
                "the audit log could not be ended in time; its last lines may be missing"
            );
        }
    }

    fn send(&self, event: AuditEvent, permit: OwnedSemaphorePermit) {
        // Fails only after the log has ended.
        drop(self.inner.queue.send(WriterMessage::Record(
            Box::new((SystemTime::now(), event)),
            permit,
        )));
    }

    fn count_lost(&self, part: LogPart) {
        self.inner
            .writer_state
            .lost_counter(part)
            .fetch_add(1, Ordering::Relaxed);
        self.inner
            .writer_state
            .total_lost
            .fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the number of records that were lost since the log was opened, because the queue or
    /// the disk was full.
    pub fn lost_records(&self) -> u64 {
        self.inner.writer_state.total_lost.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests;
