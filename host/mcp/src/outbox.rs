//! Outgoing messages of a peer: one bounded queue, which keeps their order and slows a slow peer's own calls down.

use std::time::Duration;

use tokio::sync::mpsc;

/// Messages that can wait for the peer. Further responses wait with their calls, which hold places in the client's
/// queue.
const CAPACITY: usize = 256;

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
    /// The response to a request that was processed: a result or an error.
    Answer,
    /// The response to a request that was rejected before it was processed, with the error's code.
    Refusal(i32),
}

impl Outgoing {
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
    messages: mpsc::Sender<Outgoing>,
}

/// The receiving half, for the transport.
pub(crate) type Messages = mpsc::Receiver<Outgoing>;

/// An empty queue.
pub(crate) fn channel() -> (Outbox, Messages) {
    let (sender, receiver) = mpsc::channel(CAPACITY);
    (Outbox { messages: sender }, receiver)
}

impl Outbox {
    /// Sends a message, waiting for capacity. If the peer has disconnected, the message is dropped.
    pub(crate) async fn send(&self, message: Outgoing) {
        drop(self.messages.send(message).await);
    }

    /// Waits for capacity for one message; `None` if the peer has disconnected.
    pub(crate) async fn reserve(&self) -> Option<mpsc::Permit<'_, Outgoing>> {
        self.messages.reserve().await.ok()
    }

    /// Sends a message if there is capacity, and drops it otherwise: for progress and the like.
    pub(crate) fn offer(&self, message: Outgoing) {
        drop(self.messages.try_send(message));
    }

    /// Waits until the peer disconnects.
    pub(crate) async fn closed(&self) {
        self.messages.closed().await;
    }
}
