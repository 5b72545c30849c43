//! Outgoing messages of a peer: one queue, bounded in messages and in bytes, which keeps their order and slows a slow
//! peer's own calls down.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

/// Messages that can wait for the peer. Further responses wait with their calls, which hold places in the client's
/// queue.
const CAPACITY: usize = 256;

/// Bytes that can wait for the peer: the largest message that is common. One that is larger waits alone.
const BYTES: u32 = 1 << 20;

/// One encoded message.
#[derive(Debug)]
pub(crate) struct Outgoing {
    /// JSON, without a line feed.
    pub text: Vec<u8>,
    /// The kind of the message, for transports that need it.
    pub kind: Kind,
    /// Time after which a rejected call can be retried.
    pub retry_after: Option<Duration>,
}

/// The kind of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A notification.
    Notification,
    /// A request of the server.
    Request,
    /// The response to a request that was processed: a result or an error.
    Answer,
    /// The response to a request that was rejected before it was processed, with the error's code.
    Refusal(i32),
}

impl Kind {
    /// Whether the message responds to a message of the client.
    pub(crate) fn responds(self) -> bool {
        matches!(self, Self::Answer | Self::Refusal(_))
    }
}

impl Outgoing {
    /// A request of the server.
    pub(crate) fn request(text: Vec<u8>) -> Self {
        Self { text, kind: Kind::Request, retry_after: None }
    }

    /// A notification.
    pub(crate) fn notification(text: Vec<u8>) -> Self {
        Self { text, kind: Kind::Notification, retry_after: None }
    }

    /// The response to a request that was rejected before it was processed.
    pub(crate) fn refusal(text: Vec<u8>, code: i32) -> Self {
        Self { text, kind: Kind::Refusal(code), retry_after: None }
    }

    /// The response to a request that was processed.
    pub(crate) fn answer(text: Vec<u8>) -> Self {
        Self { text, kind: Kind::Answer, retry_after: None }
    }
}

/// The sending half. Clones share the queue.
#[derive(Clone, Debug)]
pub(crate) struct Outbox {
    messages: mpsc::Sender<Queued>,
    /// Bytes that may still be queued.
    room: Arc<Semaphore>,
}

/// The receiving half, for the transport.
#[derive(Debug)]
pub(crate) struct Messages {
    messages: mpsc::Receiver<Queued>,
}

/// A message, and the room that it takes in the queue. Boxed, because the channel always has places for some, and there is a
/// channel for each request over HTTP.
type Queued = Box<(Outgoing, OwnedSemaphorePermit)>;

/// An empty queue.
pub(crate) fn channel() -> (Outbox, Messages) {
    let (sender, receiver) = mpsc::channel(CAPACITY);
    (Outbox { messages: sender, room: Arc::new(Semaphore::new(BYTES as usize)) }, Messages { messages: receiver })
}

/// Capacity for one message, which is queued at once.
pub(crate) struct Capacity<'a> {
    place: mpsc::Permit<'a, Queued>,
    room: OwnedSemaphorePermit,
}

impl Capacity<'_> {
    /// Queues the message.
    pub(crate) fn send(self, message: Outgoing) {
        self.place.send(Box::new((message, self.room)));
    }
}

/// The room that a message of this many bytes takes.
fn room(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(BYTES).min(BYTES)
}

impl Outbox {
    /// Sends a message, waiting for capacity. If the peer has disconnected, the message is dropped.
    pub(crate) async fn send(&self, message: Outgoing) {
        if let Some(capacity) = self.reserve(message.text.len()).await {
            capacity.send(message);
        }
    }

    /// Waits for capacity for one message of up to this many bytes; `None` if the peer has disconnected.
    pub(crate) async fn reserve(&self, bytes: usize) -> Option<Capacity<'_>> {
        let room = tokio::select! {
            room = Arc::clone(&self.room).acquire_many_owned(room(bytes)) => room.ok()?,
            () = self.messages.closed() => return None,
        };
        Some(Capacity { place: self.messages.reserve().await.ok()?, room })
    }

    /// Sends a message if there is capacity, and drops it otherwise: for progress and the like.
    pub(crate) fn offer(&self, message: Outgoing) {
        if let Ok(room) = Arc::clone(&self.room).try_acquire_many_owned(room(message.text.len())) {
            drop(self.messages.try_send(Box::new((message, room))));
        }
    }

    /// Waits until the peer disconnects.
    pub(crate) async fn closed(&self) {
        self.messages.closed().await;
    }
}

impl Messages {
    /// The next message, whose room is free again; `None` if no sender is left.
    pub(crate) async fn recv(&mut self) -> Option<Outgoing> {
        self.messages.recv().await.map(|queued| queued.0)
    }

    /// The next message if one is queued.
    pub(crate) fn try_recv(&mut self) -> Option<Outgoing> {
        self.messages.try_recv().ok().map(|queued| queued.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(bytes: usize) -> Outgoing {
        Outgoing::notification(vec![b'x'; bytes])
    }

    #[tokio::test]
    async fn the_queue_is_bounded_in_bytes() {
        let (outbox, mut messages) = channel();
        let half = BYTES as usize / 2;
        for _ in 0..3 {
            outbox.offer(message(half));
        }
        assert!(messages.try_recv().is_some() && messages.try_recv().is_some());
        assert!(messages.try_recv().is_none(), "the third was dropped");
        outbox.send(message(10 * half)).await;
        outbox.offer(message(1));
        assert_eq!(messages.recv().await.unwrap().text.len(), 10 * half, "a large one waits alone");
        assert!(messages.try_recv().is_none());
    }

    #[tokio::test]
    async fn nobody_waits_for_a_peer_that_left() {
        let (outbox, messages) = channel();
        outbox.send(message(BYTES as usize)).await;
        let waiting = tokio::spawn(async move { outbox.send(message(1)).await });
        tokio::task::yield_now().await;
        drop(messages);
        waiting.await.unwrap();
    }
}
