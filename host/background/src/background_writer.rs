//! A background thread that writes queued items in batches.
//!
//! The queue itself has no bound, so that adding an item never waits and never fails for lack of
//! space. The bound is on memory: an item contains the reservation of its memory, which is released
//! when the writer drops the item. Each user of the queue decides how memory is reserved, and
//! whether a caller waits, is refused or loses its item if no memory is available.

use std::fmt;
use std::io;
use std::ops::ControlFlow;
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::thread;
use std::time::Duration;

/// The processing of the items of a queue, in its background thread.
pub trait BatchWriter: Send + 'static {
    /// An item, with the reservation of its memory.
    type Item: Send + 'static;

    /// Delay between the first item of a batch and the others. Waking the thread for each item can
    /// cost more than the item.
    const BATCH_DELAY: Duration = Duration::ZERO;

    /// Returns the maximum time to wait for the next item; `None` if there is nothing to do before
    /// it.
    fn next_timeout(&self) -> Option<Duration> {
        None
    }

    /// Adds an item to the batch. Returns whether the batch accepts another one.
    fn add(&mut self, item: Self::Item) -> BatchSpace;

    /// Writes the batch, which is empty after a timeout. Returns whether the thread continues.
    fn write_batch(&mut self) -> ControlFlow<()>;

    /// Writes the remaining items, because the queue has ended or its sender was dropped.
    fn end(&mut self);
}

/// The capacity of a batch after an item was added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchSpace {
    /// The batch accepts more items.
    More,
    /// The batch must be written first.
    Full,
}

/// The error of sending to a writer that has ended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the writer has ended")]
pub struct WriterEnded;

/// The error of a writer that does not end in time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the writer did not end in time")]
pub struct EndTimeout;

/// A message to the thread.
#[derive(Debug)]
enum QueueMessage<T> {
    Item(T),
    /// The end of the queue. The thread confirms it on the channel.
    End(SyncSender<()>),
}

/// The sending side of a background writer. The thread ends when it is dropped.
pub struct BackgroundQueue<T> {
    sender: Sender<QueueMessage<T>>,
    ended: OnceLock<()>,
}

impl<T> BackgroundQueue<T> {
    /// Adds an item without waiting.
    ///
    /// # Errors
    ///
    /// Returns an error if the writer has ended. The item is dropped.
    pub fn send(&self, item: T) -> Result<(), WriterEnded> {
        self.sender
            .send(QueueMessage::Item(item))
            .map_err(|_| WriterEnded)
    }

    /// Writes the queued items and ends the writer. Waits at most `timeout` for that. Later items
    /// are not written, and further ends do nothing.
    ///
    /// # Errors
    ///
    /// Returns an error if the writer did not end in time. It still ends later.
    pub fn end(&self, timeout: Duration) -> Result<(), EndTimeout> {
        if self.ended.set(()).is_err() {
            return Ok(());
        }
        let (confirmation, confirmed) = sync_channel(1);
        // Fails if the writer has ended.
        if self.sender.send(QueueMessage::End(confirmation)).is_err() {
            return Ok(());
        }
        confirmed.recv_timeout(timeout).map_err(|_| EndTimeout)
    }
}

impl<T> fmt::Debug for BackgroundQueue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BackgroundQueue")
            .field("ended", &self.ended)
            .finish_non_exhaustive()
    }
}

/// The receiving side of a queue, before its thread starts.
#[derive(Debug)]
pub struct BackgroundWriter<W: BatchWriter> {
    // Dropped before the receiver, so that the writer's files are closed when a caller that waits
    // for an item is notified.
    writer: W,
    queue: Receiver<QueueMessage<W::Item>>,
}

impl<W: BatchWriter> BackgroundWriter<W> {
    /// Creates a writer and its queue. Nothing is written before [`BackgroundWriter::start`].
    pub fn new(writer: W) -> (Self, BackgroundQueue<W::Item>) {
        let (sender, queue) = channel();
        let sending_side = BackgroundQueue {
            sender,
            ended: OnceLock::new(),
        };
        (Self { writer, queue }, sending_side)
    }

    /// Starts the thread, with this name.
    ///
    /// # Errors
    ///
    /// Returns an error if the system provides no thread.
    pub fn start(self, name: &str) -> io::Result<()> {
        let thread = thread::Builder::new().name(name.to_owned());
        thread.spawn(move || self.run()).map(drop)
    }

    /// Writes until the queue ends, its sender is dropped or the writer stops.
    #[expect(
        clippy::disallowed_methods,
        reason = "the delay collects a batch; a wait for the next item would end with each item"
    )]
    pub fn run(mut self) {
        loop {
            let received = match self.writer.next_timeout() {
                Some(timeout) => self.queue.recv_timeout(timeout),
                None => self.queue.recv().map_err(RecvTimeoutError::from),
            };
            let mut next = match received {
                Ok(message) => Some(message),
                Err(RecvTimeoutError::Timeout) => None,
                // All senders are dropped.
                Err(RecvTimeoutError::Disconnected) => return self.writer.end(),
            };
            if next.is_some() && !W::BATCH_DELAY.is_zero() {
                thread::sleep(W::BATCH_DELAY);
            }
            while let Some(message) = next {
                let batch_space = match message {
                    QueueMessage::Item(item) => self.writer.add(item),
                    QueueMessage::End(confirmation) => {
                        self.writer.end();
                        // Fails if the caller no longer waits.
                        let _ = confirmation.try_send(());
                        return;
                    }
                };
                next = match batch_space {
                    BatchSpace::More => self.queue.try_recv().ok(),
                    BatchSpace::Full => None,
                };
            }
            if self.writer.write_batch().is_break() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests;
