//! What is sent to a peer: one bounded queue, so that messages keep their order and a slow peer slows itself down.

use std::time::Duration;

use tokio::sync::mpsc;

/// Messages that may wait for the peer. Answers beyond wait with their calls,
/// which hold places in the client's queue.
const CAPACITY: usize = 256;

/// One message, encoded.
#[derive(Debug)]
pub(crate) struct Outgoing {
    /// JSON, without a line end.
    pub text: Vec<u8>,
    /// What it is, for transports that say more than the message does.
    pub kind: Kind,
    /// When what was refused may be tried again.
    pub retry_after: Option<Duration>,
}

/// What a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Nobody asked for it in particular.
    Notification,
    /// The answer to a request that was tried: a result, or the error that came of it.
    Answer,
    /// The answer to what was not even tried, with the error's code.
    Refusal(i32),
}

impl Outgoing {
    /// A notification.
    pub(crate) fn notification(text: Vec<u8>) -> Self {
        Self { text, kind: Kind::Notification, retry_after: None }
    }

    /// The answer to what was not even tried.
    pub(crate) fn refusal(text: Vec<u8>, code: i32) -> Self {
        Self { text, kind: Kind::Refusal(code), retry_after: None }
    }

    /// An answer.
    pub(crate) fn answer(text: Vec<u8>) -> Self {
        Self { text, kind: Kind::Answer, retry_after: None }
    }
}

/// The sending end. Clones share the queue.
#[derive(Clone, Debug)]
pub(crate) struct Outbox {
    messages: mpsc::Sender<Outgoing>,
}

/// The end that a transport reads.
pub(crate) type Messages = mpsc::Receiver<Outgoing>;

/// An empty queue.
pub(crate) fn channel() -> (Outbox, Messages) {
    let (sender, receiver) = mpsc::channel(CAPACITY);
    (Outbox { messages: sender }, receiver)
}

impl Outbox {
    /// Sends, waiting for room. A peer that is gone loses the message.
    pub(crate) async fn send(&self, message: Outgoing) {
        drop(self.messages.send(message).await);
    }

    /// Sends if there is room: for what may be lost, such as progress.
    pub(crate) fn offer(&self, message: Outgoing) {
        drop(self.messages.try_send(message));
    }

    /// Waits until the peer is gone.
    pub(crate) async fn closed(&self) {
        self.messages.closed().await;
    }
}
