//! The response streams of a session: those that have a reader, and those that their client can
//! resume.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::runtime::Handle;
use tokio::time::Instant;

use super::event::{EventId, EventSource};
use super::event_log::EVENT_OVERHEAD_BYTES;
use super::response_stream::{ReaderExit, ResponseStream, StreamReader};
use crate::exchange::outbox::{OutboxReceiver, OutgoingMessage};
use crate::exchange::quota::SharedQuota;
use crate::host::caller::Caller;

/// Maximum number of retained finished streams per session. There may be more streams to which a
/// call still writes.
const MAX_FINISHED_STREAMS: usize = 16;

/// The response streams of a session.
pub(super) struct ResponseStreams {
    table: Mutex<StreamTable>,
    /// Memory for the retained events of all streams of all sessions, with a limit per caller.
    kept: Arc<SharedQuota>,
    /// Time for which a stream without a reader is retained.
    resume: Duration,
}

#[derive(Default)]
struct StreamTable {
    /// The number of streams opened so far.
    count: u64,
    streams: BTreeMap<u64, Arc<ResponseStream>>,
    /// Streams that have been sent completely, oldest first.
    over: VecDeque<u64>,
    /// If set, the session has ended.
    is_closed: bool,
}

impl ResponseStreams {
    /// Creates an empty table. The memory for retained events is taken from `kept`, and they are
    /// retained for the time `resume`. If that is 0, nothing is retained.
    pub(super) fn new(kept: Arc<SharedQuota>, resume: Duration) -> Arc<Self> {
        Arc::new(Self {
            table: Mutex::default(),
            kept,
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
        let Ok(held) = self.kept.try_reserve(&caller.name, EVENT_OVERHEAD_BYTES) else {
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
        let StreamTable { streams, over, .. } = &mut *table;
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
        table.over.clear();
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
                if !table.over.contains(&number) {
                    table.over.push_back(number);
                }
                if table.over.len() > MAX_FINISHED_STREAMS {
                    table.over.pop_front()
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
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
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
mod tests {
    use super::*;
    use crate::exchange::outbox::{self, Outbox};
    use crate::host::interface::Host as _;
    use crate::lists::access_rights::CallerRights;
    use crate::testing::stub_host::Stub;

    const RESUME: Duration = Duration::from_mins(1);

    fn responses(kept: usize) -> Arc<ResponseStreams> {
        ResponseStreams::new(SharedQuota::new(kept, kept), RESUME)
    }

    fn ada() -> Arc<Caller> {
        Arc::new(Caller {
            name: "ada".to_owned(),
            ..Caller::local(Stub::new().client(Caller::LOCAL))
        })
    }

    fn open(responses: &Arc<ResponseStreams>) -> (Outbox, ResumableReader) {
        let (outbox, messages) = outbox::channel();
        (
            outbox,
            responses
                .open(ada(), None, messages, None)
                .unwrap_or_else(|_| panic!("it is not kept")),
        )
    }

    fn id(stream: u64, event: u64) -> EventId {
        EventId { stream, event }
    }

    async fn text(reader: &mut ResumableReader) -> Option<String> {
        let event = reader.next().await?;
        let text = std::str::from_utf8(&event).unwrap();
        text.lines()
            .find_map(|line| line.strip_prefix("data: "))
            .map(str::to_owned)
    }

    fn answer(text: impl AsRef<[u8]>) -> OutgoingMessage {
        OutgoingMessage::response(text.as_ref().to_vec())
    }

    #[tokio::test]
    async fn a_stream_that_was_left_is_kept_for_a_while() {
        let kept = SharedQuota::new(1 << 20, 1 << 20);
        // Short enough to have passed at any check.
        let responses = ResponseStreams::new(kept, Duration::from_nanos(1));
        let (outbox, mut reader) = open(&responses);
        reader.opening();
        responses.expire();
        // A stream with a reader is retained.
        outbox.send(answer("1")).await;
        assert_eq!(text(&mut reader).await.unwrap(), "1");
        drop(reader);
        while responses.kept.of("ada") > 0 {
            responses.expire();
            tokio::task::yield_now().await;
        }
        assert!(responses.resume(&ada(), id(1, 0), None).is_none());
        outbox.closed().await;

        let responses = self::responses(1 << 20);
        let (outbox, reader) = open(&responses);
        reader.opening();
        drop(reader);
        outbox
            .send(OutgoingMessage::notification(b"1".to_vec()))
            .await;
        responses.expire();
        let mut reader = responses.resume(&ada(), id(1, 0), None).unwrap();
        assert_eq!(text(&mut reader).await.unwrap(), "1");
    }

    #[tokio::test]
    async fn a_stream_without_an_id_that_its_client_knows_ends_with_its_connection() {
        let responses = responses(1 << 20);
        let (outbox, reader) = open(&responses);
        drop(reader);
        outbox.closed().await;
        assert_eq!(responses.kept.of("ada"), 0);
    }

    #[tokio::test]
    async fn the_newest_reader_gets_everything_whatever_the_others_wait_for() {
        let responses = responses(1 << 20);
        let (outbox, mut old) = open(&responses);
        old.opening();
        let waiting = tokio::spawn(async move { old.next().await.is_none() });
        tokio::task::yield_now().await;
        for n in 1..=20 {
            let mut reader = responses.resume(&ada(), id(1, 0), None).unwrap();
            outbox
                .send(OutgoingMessage::notification(n.to_string().into_bytes()))
                .await;
            for expected in 1..=n {
                assert_eq!(text(&mut reader).await.unwrap(), expected.to_string());
            }
        }
        assert!(waiting.await.unwrap());
        let mut last = responses.resume(&ada(), id(1, 20), None).unwrap();
        drop(outbox);
        assert_eq!(text(&mut last).await, None);
    }

    #[tokio::test]
    async fn of_streams_that_are_over_the_newest_are_kept() {
        let responses = responses(1 << 20);
        for n in 1..=2 * MAX_FINISHED_STREAMS as u64 {
            let (outbox, mut reader) = open(&responses);
            outbox.send(answer(n.to_string())).await;
            drop(outbox);
            assert_eq!(text(&mut reader).await.unwrap(), n.to_string());
            assert_eq!(text(&mut reader).await, None);
        }
        let kept = |number| responses.resume(&ada(), id(number, 0), None).is_some();
        assert!(
            !kept(MAX_FINISHED_STREAMS as u64)
                && kept(MAX_FINISHED_STREAMS as u64 + 1)
                && kept(2 * MAX_FINISHED_STREAMS as u64)
        );
    }

    #[tokio::test]
    async fn what_there_is_no_room_for_is_sent_and_not_kept() {
        let responses = responses(3 * EVENT_OVERHEAD_BYTES);
        let (outbox, mut reader) = open(&responses);
        outbox
            .send(answer("x".repeat(10 * EVENT_OVERHEAD_BYTES)))
            .await;
        assert_eq!(
            text(&mut reader).await.unwrap().len(),
            10 * EVENT_OVERHEAD_BYTES
        );
        drop(reader);
        assert!(
            responses.resume(&ada(), id(1, 0), None).is_none(),
            "something is missing"
        );
        assert!(
            responses.resume(&ada(), id(1, 1), None).is_some(),
            "nothing is missing"
        );
        let _others = [open(&responses), open(&responses)];
        let (_outbox, messages) = outbox::channel();
        assert!(responses.open(ada(), None, messages, None).is_err());
    }

    /// A client that disconnects immediately and never returns takes no more than its share.
    #[tokio::test]
    async fn what_is_sent_while_nobody_reads_counts_and_no_call_waits_for_a_reader() {
        let responses = responses(8 * EVENT_OVERHEAD_BYTES);
        let (outbox, reader) = open(&responses);
        reader.opening();
        drop(reader);
        // More messages than the queue can hold.
        for n in 0..2_000 {
            outbox
                .send(OutgoingMessage::notification(vec![b'x'; 10_000]))
                .await;
            assert!(responses.kept.of("ada") <= 8 * EVENT_OVERHEAD_BYTES, "{n}");
        }
        outbox.send(answer("x".repeat(4 << 20))).await;
        drop(outbox);
        let is_over = || async {
            let Some(mut reader) = responses.resume(&ada(), id(1, 2_001), None) else {
                return false;
            };
            text(&mut reader).await.is_none()
        };
        while !is_over().await {
            tokio::task::yield_now().await;
        }
        assert!(
            responses.resume(&ada(), id(1, 2_000), None).is_none(),
            "the response is lost, and that is known"
        );
        assert!(responses.kept.of("ada") <= 8 * EVENT_OVERHEAD_BYTES);
    }

    #[tokio::test]
    async fn somebody_with_other_rights_gets_nothing() {
        let responses = responses(1 << 20);
        let (outbox, reader) = open(&responses);
        reader.opening();
        drop(reader);
        outbox.send(answer("1")).await;
        let other = Caller {
            rights: CallerRights::Only(Vec::new()),
            ..Caller::clone(&ada())
        };
        assert!(responses.resume(&other, id(1, 0), None).is_none());
        assert_eq!(
            text(&mut responses.resume(&ada(), id(1, 0), None).unwrap())
                .await
                .unwrap(),
            "1"
        );
    }

    #[tokio::test]
    async fn nothing_outlives_the_session() {
        let responses = responses(1 << 20);
        let (outbox, reader) = open(&responses);
        reader.opening();
        drop(reader);
        responses.close();
        outbox.closed().await;
        let (_outbox, messages) = outbox::channel();
        assert!(responses.open(ada(), None, messages, None).is_err());
    }

    #[tokio::test]
    async fn a_client_that_polls_gets_a_stream_that_ends_in_time() {
        let responses = responses(1 << 20);
        let (outbox, messages) = outbox::channel();
        let closes = Some(Instant::now());
        let mut reader = responses
            .open(ada(), None, messages, closes)
            .unwrap_or_else(|_| panic!("it is not kept"));
        reader.opening();
        assert_eq!(text(&mut reader).await, None);
        drop(reader);
        outbox.send(answer("1")).await;
        let mut reader = responses.resume(&ada(), id(1, 0), closes).unwrap();
        assert_eq!(
            text(&mut reader).await.unwrap(),
            "1",
            "what is there is sent in any case"
        );
    }
}
