//! The response streams of a session: those that have a reader, and those that their client can
//! resume.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::{Mutex, MutexGuard};
use tokio::runtime::Handle;
use tokio::time::Instant;
use toolbay_background::SharedQuota;

use super::event::{EventId, EventSource};
use super::event_log::EVENT_OVERHEAD_BYTES;
use super::response_stream::{ReaderExit, ResponseStream, StreamReader};
use crate::exchange::outbox::{OutboxReceiver, OutgoingMessage};
use crate::host::caller::Caller;

/// Maximum number of retained finished streams per session. There may be more streams to which a
/// call still writes.
const MAX_FINISHED_STREAMS: usize = 16;

/// The response streams of a session.
pub(super) struct ResponseStreams {
    table: Mutex<StreamTable>,
    /// Memory for the retained events of all streams of all sessions, with a limit per caller.
    memory: Arc<SharedQuota>,
    /// Time for which a stream without a reader is retained.
    resume: Duration,
}

#[derive(Default)]
struct StreamTable {
    /// The number of streams opened so far.
    count: u64,
    streams: BTreeMap<u64, Arc<ResponseStream>>,
    /// Streams that have been sent completely, oldest first.
    finished: VecDeque<u64>,
    /// If set, the session has ended.
    is_closed: bool,
}

impl ResponseStreams {
    /// Creates an empty table. The memory for retained events is taken from `memory`, and they are
    /// retained for the time `resume`. If that is 0, nothing is retained.
    pub(super) fn new(memory: Arc<SharedQuota>, resume: Duration) -> Arc<Self> {
        Arc::new(Self {
            table: Mutex::default(),
            memory,
            resume,
        })
    }

    /// Opens a stream for a request of `caller`, with `first`, which was taken out of the queue
    /// already, and with the content of `messages`.
    ///
    /// # Errors
    ///
    /// Nothing can be retained, so the client could not resume the stream. The arguments are
    /// returned.
    pub(super) fn open(
        self: &Arc<Self>,
        caller: Arc<Caller>,
        first: Option<OutgoingMessage>,
        messages: OutboxReceiver,
        closes: Option<Instant>,
    ) -> Result<ResumableReader, (Option<OutgoingMessage>, OutboxReceiver)> {
        if self.resume.is_zero() {
            return Err((first, messages));
        }
        let Ok(held) = self.memory.try_reserve(&caller.name, EVENT_OVERHEAD_BYTES) else {
            return Err((first, messages));
        };
        let mut table = self.table();
        if table.is_closed {
            return Err((first, messages));
        }
        table.count += 1;
        let reader =
            ResponseStream::open(table.count, caller, first.as_ref(), messages, held, closes);
        let (number, stream) = reader.stream();
        table.streams.insert(number, Arc::clone(stream));
        drop(table);
        Ok(ResumableReader {
            responses: Arc::clone(self),
            reader,
        })
    }

    /// Resumes a stream after the event with this id; `None` if the stream is no longer retained
    /// for `caller`.
    pub(super) fn resume(
        self: &Arc<Self>,
        caller: &Caller,
        id: EventId,
        closes: Option<Instant>,
    ) -> Option<ResumableReader> {
        let stream = self.table().streams.get(&id.stream).cloned()?;
        Some(ResumableReader {
            reader: stream.resume(caller, id.event, closes)?,
            responses: Arc::clone(self),
        })
    }

    /// Drops the streams that have had no reader for too long.
    pub(super) fn expire(&self) {
        let Some(since) = Instant::now().checked_sub(self.resume) else {
            return;
        };
        let mut gone = Vec::new();
        let mut table = self.table();
        table.streams.retain(|_, stream| {
            let left = stream.is_idle_since(since);
            if left {
                gone.push(Arc::clone(stream));
            }
            !left
        });
        let StreamTable {
            streams,
            finished: over,
            ..
        } = &mut *table;
        over.retain(|number| streams.contains_key(number));
        drop(table);
        for stream in gone {
            stream.discard();
        }
    }

    /// Drops all streams because the session has ended.
    pub(super) fn close(&self) {
        let mut table = self.table();
        table.is_closed = true;
        let streams = std::mem::take(&mut table.streams);
        table.finished.clear();
        drop(table);
        for stream in streams.into_values() {
            stream.discard();
        }
    }

    /// Retains or drops a stream that its client no longer reads.
    fn on_detach(&self, number: u64, left: ReaderExit) {
        let mut table = self.table();
        let forgotten = match left {
            ReaderExit::Replaced => None,
            ReaderExit::Unnamed => Some(number),
            ReaderExit::Open(mut reader) => match Handle::try_current() {
                Ok(runtime) if table.streams.contains_key(&number) => {
                    drop(runtime.spawn(async move { while reader.next().await.is_some() {} }));
                    None
                }
                // The session or the server has ended.
                _ => Some(number),
            },
            ReaderExit::Over => {
                // A client may have read it twice.
                if !table.finished.contains(&number) {
                    table.finished.push_back(number);
                }
                if table.finished.len() > MAX_FINISHED_STREAMS {
                    table.finished.pop_front()
                } else {
                    None
                }
            }
        };
        let forgotten = forgotten.and_then(|number| table.streams.remove(&number));
        drop(table);
        drop(forgotten);
    }

    // Held for a few instructions and never across an await.
    fn table(&self) -> MutexGuard<'_, StreamTable> {
        self.table.lock()
    }
}

/// Reader of a stream of a session. When dropped, it returns the stream to the table.
pub(super) struct ResumableReader {
    responses: Arc<ResponseStreams>,
    reader: StreamReader,
}

impl ResumableReader {
    /// Returns the event that opens the stream for its client.
    pub(super) fn opening(&self) -> Bytes {
        self.reader.opening()
    }
}

impl EventSource for ResumableReader {
    async fn next(&mut self) -> Option<Bytes> {
        self.reader.next().await
    }
}

impl Drop for ResumableReader {
    fn drop(&mut self) {
        self.responses
            .on_detach(self.reader.stream().0, self.reader.detach());
    }
}

#[cfg(test)]
mod tests;
