//! Outgoing messages of a peer: one queue, bounded in messages and in bytes. It preserves the
//! message order, and applies backpressure to the calls of a slow peer.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::futures::Notified;
use tokio::sync::{Notify, Semaphore};

/// Maximum number of messages that can wait for the peer. Further responses wait with their calls,
/// which continue to occupy the client's queue.
const MAX_QUEUED_MESSAGES: u32 = 256;

/// Maximum number of bytes that can wait for the peer: the size of the largest common message. A
/// larger message waits alone in the queue.
const MAX_QUEUED_BYTES: u32 = 1 << 20;

/// One encoded message.
#[derive(Debug)]
pub(crate) struct OutgoingMessage {
    /// JSON, without a line feed.
    pub text: Vec<u8>,
    /// The kind of the message, for transports that need it.
    pub kind: OutgoingKind,
    /// Time after which a rejected call can be retried.
    pub retry_after: Option<Duration>,
}

/// The kind of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OutgoingKind {
    /// A notification.
    Notification,
    /// A request from the server.
    Request,
    /// The response to a request that was processed: a result or an error.
    Response,
    /// The response to a request that was rejected before it was processed, with the error's code.
    Rejection(i32),
}

impl OutgoingKind {
    /// Returns whether the message responds to a client message.
    pub(crate) fn is_response(self) -> bool {
        matches!(self, Self::Response | Self::Rejection(_))
    }
}

impl OutgoingMessage {
    /// Creates a request from the server.
    pub(crate) fn request(text: Vec<u8>) -> Self {
        Self {
            text,
            kind: OutgoingKind::Request,
            retry_after: None,
        }
    }

    /// Creates a notification.
    pub(crate) fn notification(text: Vec<u8>) -> Self {
        Self {
            text,
            kind: OutgoingKind::Notification,
            retry_after: None,
        }
    }

    /// Creates the response to a request that was rejected before it was processed.
    pub(crate) fn rejection(text: Vec<u8>, code: i32) -> Self {
        Self {
            text,
            kind: OutgoingKind::Rejection(code),
            retry_after: None,
        }
    }

    /// Creates the response to a request that was processed.
    pub(crate) fn response(text: Vec<u8>) -> Self {
        Self {
            text,
            kind: OutgoingKind::Response,
            retry_after: None,
        }
    }
}

/// State shared by both halves. There is one for each HTTP request, which may wait for a person: it
/// is small, and allocates no queue slots before there are messages.
#[derive(Debug)]
struct OutboxQueue {
    state: Mutex<OutboxState>,
    /// Available capacity, in bytes. Senders wait for it in order. Closed when the peer has
    /// disconnected.
    byte_permits: Semaphore,
    /// Notified when a message is queued or the last sender is dropped.
    changed: Notify,
    /// Notified when the peer disconnects.
    disconnected: Notify,
}

#[derive(Debug)]
struct OutboxState {
    messages: VecDeque<QueuedMessage>,
    senders: usize,
}

/// A message, and the capacity that it occupies in the queue.
type QueuedMessage = Box<(OutgoingMessage, u32)>;

/// The sending half. Clones share the queue.
#[derive(Debug)]
pub(crate) struct Outbox(Arc<OutboxQueue>);

/// The receiving half, for the transport.
#[derive(Debug)]
pub(crate) struct OutboxReceiver(Arc<OutboxQueue>);

/// Creates an empty queue.
pub(crate) fn channel() -> (Outbox, OutboxReceiver) {
    let queue = Arc::new(OutboxQueue {
        state: Mutex::new(OutboxState {
            messages: VecDeque::new(),
            senders: 1,
        }),
        byte_permits: Semaphore::new(MAX_QUEUED_BYTES as usize),
        changed: Notify::new(),
        disconnected: Notify::new(),
    });
    (Outbox(Arc::clone(&queue)), OutboxReceiver(queue))
}

/// Reserved capacity for one message, which can be queued immediately.
pub(crate) struct OutboxPermit<'a> {
    queue: &'a OutboxQueue,
    permits: u32,
}

impl OutboxPermit<'_> {
    /// Queues the message.
    pub(crate) fn send(mut self, message: OutgoingMessage) {
        // `drop` releases nothing after this.
        let permits = std::mem::take(&mut self.permits);
        self.queue.push(message, permits);
    }
}

impl Drop for OutboxPermit<'_> {
    fn drop(&mut self) {
        self.queue.byte_permits.add_permits(self.permits as usize);
    }
}

/// Returns the capacity that a message of this size occupies. The minimum bounds the number of
/// messages.
fn permits_for(bytes: usize) -> u32 {
    u32::try_from(bytes)
        .unwrap_or(MAX_QUEUED_BYTES)
        .clamp(MAX_QUEUED_BYTES / MAX_QUEUED_MESSAGES, MAX_QUEUED_BYTES)
}

impl OutboxQueue {
    fn lock(&self) -> MutexGuard<'_, OutboxState> {
        self.state.lock()
    }

    fn push(&self, message: OutgoingMessage, permits: u32) {
        let queued = Box::new((message, permits));
        let mut state = self.lock();
        // A message for a disconnected peer would never be received.
        if !self.byte_permits.is_closed() {
            state.messages.push_back(queued);
        }
        drop(state);
        self.changed.notify_one();
    }
}

impl Clone for Outbox {
    fn clone(&self) -> Self {
        self.0.lock().senders += 1;
        Self(Arc::clone(&self.0))
    }
}

impl Drop for Outbox {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.senders -= 1;
        let is_last = state.senders == 0;
        drop(state);
        if is_last {
            self.0.changed.notify_one();
        }
    }
}

impl Outbox {
    /// Sends a message, and waits for capacity. Drops the message if the peer has disconnected.
    pub(crate) async fn send(&self, message: OutgoingMessage) {
        if let Some(permit) = self.reserve(message.text.len()).await {
            permit.send(message);
        }
    }

    /// Waits for capacity for one message of up to this many bytes. Returns `None` if the peer has
    /// disconnected.
    pub(crate) async fn reserve(&self, bytes: usize) -> Option<OutboxPermit<'_>> {
        let permits = permits_for(bytes);
        self.0
            .byte_permits
            .acquire_many(permits)
            .await
            .ok()?
            .forget();
        Some(OutboxPermit {
            queue: &self.0,
            permits,
        })
    }

    /// Sends a message if there is capacity, and drops it otherwise. For messages that may be lost,
    /// such as progress.
    pub(crate) fn try_send(&self, message: OutgoingMessage) {
        let permits = permits_for(message.text.len());
        if let Ok(permit) = self.0.byte_permits.try_acquire_many(permits) {
            permit.forget();
            self.0.push(message, permits);
        }
    }

    /// Waits until the peer disconnects.
    pub(crate) async fn closed(&self) {
        let mut disconnected = pin!(self.0.disconnected.notified());
        // The registration also catches a peer that disconnects before the wait.
        disconnected.as_mut().enable();
        if !self.0.byte_permits.is_closed() {
            disconnected.await;
        }
    }
}

impl OutboxReceiver {
    /// Receives the next message and releases its capacity. Returns `None` if no sender is left.
    pub(crate) async fn recv(&self) -> Option<OutgoingMessage> {
        loop {
            match self.try_recv() {
                None if !self.has_no_senders() => {}
                // The last sender may have sent a message before it was dropped.
                None => return self.try_recv(),
                some => return some,
            }
            // `Notify` retains a notification that arrives in between.
            self.0.changed.notified().await;
        }
    }

    /// Returns the next message if one is queued, and releases its capacity.
    pub(crate) fn try_recv(&self) -> Option<OutgoingMessage> {
        let (message, permits) = *self.0.lock().messages.pop_front()?;
        self.0.byte_permits.add_permits(permits as usize);
        Some(message)
    }

    /// Returns whether no sender is left. Messages may still be queued.
    pub(crate) fn has_no_senders(&self) -> bool {
        self.0.lock().senders == 0
    }

    /// Returns a future that completes at the next change: a message is queued, the last sender is
    /// dropped, or [`OutboxReceiver::wake`] is called.
    pub(crate) fn changed(&self) -> Notified<'_> {
        self.0.changed.notified()
    }

    /// Wakes every task that waits for a change.
    pub(crate) fn wake(&self) {
        self.0.changed.notify_waiters();
        // Also covers a task that is about to wait.
        self.0.changed.notify_one();
    }
}

impl Drop for OutboxReceiver {
    fn drop(&mut self) {
        // The lock prevents messages from being queued afterwards.
        let mut state = self.0.lock();
        self.0.byte_permits.close();
        let messages = std::mem::take(&mut state.messages);
        drop(state);
        drop(messages);
        self.0.disconnected.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(bytes: usize) -> OutgoingMessage {
        OutgoingMessage::notification(vec![b'x'; bytes])
    }

    #[tokio::test]
    async fn the_queue_is_bounded_in_bytes() {
        let (outbox, messages) = channel();
        let half = MAX_QUEUED_BYTES as usize / 2;
        for _ in 0..3 {
            outbox.try_send(message(half));
        }
        assert!(messages.try_recv().is_some() && messages.try_recv().is_some());
        assert!(messages.try_recv().is_none(), "the third was dropped");
        outbox.send(message(10 * half)).await;
        outbox.try_send(message(1));
        assert_eq!(
            messages.recv().await.unwrap().text.len(),
            10 * half,
            "a large one waits alone"
        );
        assert!(messages.try_recv().is_none());
    }

    #[tokio::test]
    async fn the_queue_is_bounded_in_messages() {
        let (outbox, messages) = channel();
        for _ in 0..=MAX_QUEUED_MESSAGES {
            outbox.try_send(message(1));
        }
        for _ in 0..MAX_QUEUED_MESSAGES {
            assert!(messages.try_recv().is_some());
        }
        assert!(messages.try_recv().is_none(), "one more was dropped");
        drop(outbox.reserve(MAX_QUEUED_BYTES as usize).await.unwrap());
        assert_eq!(
            outbox.0.byte_permits.available_permits(),
            MAX_QUEUED_BYTES as usize,
            "what is not used is free again"
        );
    }

    #[tokio::test]
    async fn a_queue_without_senders_ends_after_its_messages() {
        let (outbox, messages) = channel();
        let other = outbox.clone();
        other.try_send(message(1));
        drop(outbox);
        drop(other);
        assert!(messages.recv().await.is_some());
        assert!(messages.recv().await.is_none() && messages.recv().await.is_none());
        let (outbox, messages) = channel();
        let waiting = tokio::spawn(async move { messages.recv().await.is_none() });
        tokio::task::yield_now().await;
        drop(outbox);
        assert!(waiting.await.unwrap());
    }

    #[tokio::test]
    async fn waiters_are_notified_when_the_peer_disconnects() {
        let (outbox, messages) = channel();
        let other = outbox.clone();
        let waiting = tokio::spawn(async move { other.closed().await });
        tokio::task::yield_now().await;
        drop(messages);
        waiting.await.unwrap();
        outbox.closed().await;
        outbox.try_send(message(1));
        assert!(outbox.reserve(1).await.is_none());
        assert!(outbox.0.lock().messages.is_empty());
    }

    #[tokio::test]
    async fn messages_of_each_sender_arrive_in_order() {
        let (outbox, messages) = channel();
        for sender in 0..8_u8 {
            let outbox = outbox.clone();
            tokio::spawn(async move {
                for n in 0..200_u8 {
                    outbox
                        .send(OutgoingMessage::notification(vec![sender, n]))
                        .await;
                    if n % 16 == sender {
                        tokio::task::yield_now().await;
                    }
                }
            });
        }
        drop(outbox);
        let mut next = [0; 8];
        while let Some(message) = messages.recv().await {
            let &[sender, n] = message.text.as_slice() else {
                panic!("{message:?}")
            };
            assert_eq!(n, next[usize::from(sender)]);
            next[usize::from(sender)] += 1;
        }
        assert_eq!(next, [200; 8]);
    }

    #[tokio::test]
    async fn senders_do_not_wait_for_a_disconnected_peer() {
        let (outbox, messages) = channel();
        outbox.send(message(MAX_QUEUED_BYTES as usize)).await;
        let waiting = tokio::spawn(async move { outbox.send(message(1)).await });
        tokio::task::yield_now().await;
        drop(messages);
        waiting.await.unwrap();
    }
}
