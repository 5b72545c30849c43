//! Tests of `response_streams`.

use super::*;
use crate::exchange::outbox::{self, Outbox};
use crate::lists::access_rights::CallerRights;
use crate::testing::stub_host::StubServer;

const RESUME: Duration = Duration::from_mins(1);

fn responses(kept: usize) -> Arc<ResponseStreams> {
    ResponseStreams::new(SharedQuota::new(kept, kept), RESUME)
}

fn ada() -> Arc<Caller> {
    Arc::new(Caller {
        name: "ada".to_owned(),
        ..Caller::local(StubServer::new().client(Caller::LOCAL))
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
    while responses.memory.of("ada") > 0 {
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
    assert_eq!(responses.memory.of("ada"), 0);
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
        assert!(
            responses.memory.of("ada") <= 8 * EVENT_OVERHEAD_BYTES,
            "{n}"
        );
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
    assert!(responses.memory.of("ada") <= 8 * EVENT_OVERHEAD_BYTES);
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
