//! The queue of items to export, bounded in items and in bytes.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// Maximum number of items in a request.
pub(crate) const BATCH: usize = 512;

/// Size of the items in a request, in bytes of memory. The last item may exceed it.
const BATCH_BYTES: usize = 1 << 20;

/// A bounded queue of items to export. Items that do not fit are dropped and counted.
pub(crate) struct SignalQueue<T> {
    most: usize,
    room: usize,
    state: Mutex<QueueState<T>>,
    changed: Notify,
}

struct QueueState<T> {
    items: VecDeque<(T, usize)>,
    bytes: usize,
    /// Number of items that did not fit or could not be sent.
    dropped: u64,
    /// True if the exporter has stopped.
    closed: bool,
}

impl<T> SignalQueue<T> {
    /// Creates a queue for at most `most` items with a total size of `room` bytes.
    pub(crate) fn new(most: usize, room: usize) -> Self {
        let state = QueueState { items: VecDeque::new(), bytes: 0, dropped: 0, closed: false };
        Self { most, room, state: Mutex::new(state), changed: Notify::new() }
    }

    /// Adds an item of `size` bytes. Never waits.
    pub(crate) fn push(&self, item: T, size: usize) {
        let mut state = self.state();
        if state.closed || state.items.len() >= self.most || state.bytes + size > self.room {
            state.dropped += 1;
            return;
        }
        state.items.push_back((item, size));
        state.bytes += size;
        let waiting = state.items.len();
        drop(state);
        // Wake the exporter only for the first item and when a request is full.
        if waiting == 1 || waiting == BATCH {
            self.changed.notify_one();
        }
    }

    /// Waits until the queue has `count` items.
    pub(crate) async fn has(&self, count: usize) {
        loop {
            let changed = self.changed.notified();
            if self.state().items.len() >= count {
                return;
            }
            changed.await;
        }
    }

    /// Takes the items of one request, oldest first. Returns an empty list if the queue is empty.
    pub(crate) fn take(&self) -> Vec<T> {
        let mut state = self.state();
        let (mut batch, mut bytes) = (Vec::new(), 0);
        while batch.len() < BATCH && bytes < BATCH_BYTES {
            let Some((item, size)) = state.items.pop_front() else { break };
            state.bytes -= size;
            bytes += size;
            batch.push(item);
        }
        if state.items.is_empty() {
            // Release the memory of a burst.
            state.items.shrink_to(BATCH);
        }
        batch
    }

    /// Counts items that were taken but could not be sent.
    pub(crate) fn lost(&self, count: u64) {
        let mut state = self.state();
        // The count may come from a response of the receiver, which can be any number.
        state.dropped = state.dropped.saturating_add(count);
    }

    /// Returns the total number of lost items.
    pub(crate) fn dropped(&self) -> u64 {
        self.state().dropped
    }

    /// Closes the queue and drops the remaining items. Returns the number of dropped items.
    pub(crate) fn close(&self) -> u64 {
        let mut state = self.state();
        state.closed = true;
        let left = std::mem::take(&mut state.items).len() as u64;
        state.bytes = 0;
        state.dropped = state.dropped.saturating_add(left);
        left
    }

    // The lock is held for a few instructions or while a batch is moved, and never across an await.
    fn state(&self) -> MutexGuard<'_, QueueState<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> fmt::Debug for SignalQueue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SignalQueue")
            .field("most", &self.most)
            .field("dropped", &self.dropped())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_finds_no_room_is_counted() {
        let queue = SignalQueue::new(3, 100);
        for item in 0..5 {
            queue.push(item, 10);
        }
        assert_eq!((queue.take(), queue.dropped()), (vec![0, 1, 2], 2));
        queue.push(5, 60);
        queue.push(6, 60);
        queue.push(7, 40);
        assert_eq!((queue.take(), queue.dropped()), (vec![5, 7], 3));
        queue.push(8, 101);
        assert_eq!((queue.take(), queue.dropped()), (vec![], 4));
        queue.lost(2);
        queue.push(9, 1);
        assert_eq!((queue.close(), queue.dropped()), (1, 7));
        queue.push(10, 1);
        assert_eq!((queue.take(), queue.dropped()), (vec![], 8));
    }

    #[test]
    fn a_batch_is_bounded_by_number_and_by_bytes() {
        let queue = SignalQueue::new(10_000, 1 << 30);
        (0..1000).for_each(|item| queue.push(item, 1));
        assert_eq!([queue.take().len(), queue.take().len()], [512, 488]);
        (0..10).for_each(|item| queue.push(item, BATCH_BYTES / 2));
        assert_eq!(queue.take(), [0, 1]);
        queue.push(10, 5 * BATCH_BYTES);
        assert_eq!(queue.take().len(), 2);
    }

    #[tokio::test]
    async fn whoever_waits_is_woken_for_the_first_item_and_for_a_batch() {
        let queue = std::sync::Arc::new(SignalQueue::new(1000, 1 << 20));
        let of = |count| {
            let queue = std::sync::Arc::clone(&queue);
            tokio::spawn(async move { queue.has(count).await })
        };
        let first = of(1);
        tokio::task::yield_now().await;
        queue.push(0, 1);
        first.await.unwrap();
        let all = of(BATCH);
        tokio::task::yield_now().await;
        (1..BATCH).for_each(|item| queue.push(item, 1));
        all.await.unwrap();
    }
}
