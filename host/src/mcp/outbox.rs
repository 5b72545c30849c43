//! What a session sends: one bounded queue, so that messages keep their order and a slow peer slows itself down.

use tokio::sync::mpsc;

/// Messages that may wait for the peer. Answers beyond wait with their calls,
/// which hold places in the client's queue.
const CAPACITY: usize = 256;

/// The sending end. Clones share the queue.
#[derive(Clone, Debug)]
pub(super) struct Outbox {
    messages: mpsc::Sender<Vec<u8>>,
}

/// The end that a transport reads.
pub(super) type Messages = mpsc::Receiver<Vec<u8>>;

/// An empty queue.
pub(super) fn channel() -> (Outbox, Messages) {
    let (sender, receiver) = mpsc::channel(CAPACITY);
    (Outbox { messages: sender }, receiver)
}

impl Outbox {
    /// Sends, waiting for room. A peer that is gone loses the message.
    pub(super) async fn send(&self, message: Vec<u8>) {
        drop(self.messages.send(message).await);
    }

    /// Sends if there is room: for what may be lost, such as progress.
    pub(super) fn offer(&self, message: Vec<u8>) {
        drop(self.messages.try_send(message));
    }

    /// Waits until the peer is gone.
    pub(super) async fn closed(&self) {
        self.messages.closed().await;
    }
}
