//! The queue of items to export, bounded in items and in bytes.

use std::collections::VecDeque;
use std::fmt;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;

/// Maximum number of items in a request.
pub(crate) const MAX_BATCH_ITEMS: usize = 512;

/// Size of the items in a request, in bytes of memory. The last item may exceed it.
const MAX_BATCH_BYTES: usize = 1 << 20;

/// A bounded queue of items to export. Items that do not fit are dropped and counted. Items and
/// bytes are counted under the lock of the queue, so nothing is reserved.
pub(crate) struct SignalQueue<T> {
    max_items: usize,
    max_bytes: usize,
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
    /// Creates a queue for at most `max_items` items with a total size of `max_bytes` bytes.
    pub(crate) fn new(max_items: usize, max_bytes: usize) -> Self {
        let state = QueueState {
            items: VecDeque::new(),
            bytes: 0,
            dropped: 0,
            closed: false,
        };
        Self {
            max_items,
            max_bytes,
            state: Mutex::new(state),
            changed: Notify::new(),
        }
    }

    /// Adds an item of `size` bytes. Never waits.
    pub(crate) fn push(&self, item: T, size: usize) {
        let mut state = self.lock_state();
        if state.closed
            || state.items.len() >= self.max_items
            || state.bytes + size > self.max_bytes
        {
            state.dropped += 1;
            return;
        }
        state.items.push_back((item, size));
        state.bytes += size;
        let waiting = state.items.len();
        drop(state);
        // Wake the exporter only for the first item and when a request is full.
        if waiting == 1 || waiting == MAX_BATCH_ITEMS {
            self.changed.notify_one();
        }
    }

    /// Waits until the queue has `count` items.
    pub(crate) async fn wait_for_items(&self, count: usize) {
        loop {
            let changed = self.changed.notified();
            if self.lock_state().items.len() >= count {
                return;
            }
            changed.await;
        }
    }

    /// Takes the items of one request, oldest first. Returns an empty list if the queue is empty.
    pub(crate) fn take_batch(&self) -> Vec<T> {
        let mut state = self.lock_state();
        let mut batch = Vec::new();
        let mut bytes = 0;
        while batch.len() < MAX_BATCH_ITEMS && bytes < MAX_BATCH_BYTES {
            let Some((item, size)) = state.items.pop_front() else {
                break;
            };
            state.bytes -= size;
            bytes += size;
            batch.push(item);
        }
        if state.items.is_empty() {
            // Release the memory of a burst.
            state.items.shrink_to(MAX_BATCH_ITEMS);
        }
        batch
    }

    /// Counts items that were taken but could not be sent.
    pub(crate) fn add_lost(&self, count: u64) {
        let mut state = self.lock_state();
        // The count may come from a response of the receiver, which can be any number.
        state.dropped = state.dropped.saturating_add(count);
    }

    /// Returns the total number of lost items.
    pub(crate) fn dropped_count(&self) -> u64 {
        self.lock_state().dropped
    }

    /// Closes the queue and drops the remaining items. Returns the number of dropped items.
    pub(crate) fn close(&self) -> u64 {
        let mut state = self.lock_state();
        state.closed = true;
        let remaining = std::mem::take(&mut state.items).len() as u64;
        state.bytes = 0;
        state.dropped = state.dropped.saturating_add(remaining);
        remaining
    }

    // The lock is held for a few instructions or while a batch is moved, and never across an await.
    fn lock_state(&self) -> MutexGuard<'_, QueueState<T>> {
        self.state.lock()
    }
}

impl<T> fmt::Debug for SignalQueue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SignalQueue")
            .field("max_items", &self.max_items)
            .field("dropped", &self.dropped_count())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_that_do_not_fit_are_counted() {
        let queue = SignalQueue::new(3, 100);
        for item in 0..5 {
            queue.push(item, 10);
        }
        assert_eq!(
            (queue.take_batch(), queue.dropped_count()),
            (vec![0, 1, 2], 2)
        );
        queue.push(5, 60);
        queue.push(6, 60);
        queue.push(7, 40);
        assert_eq!((queue.take_batch(), queue.dropped_count()), (vec![5, 7], 3));
        queue.push(8, 101);
        assert_eq!((queue.take_batch(), queue.dropped_count()), (vec![], 4));
        queue.add_lost(2);
        queue.push(9, 1);
        assert_eq!((queue.close(), queue.dropped_count()), (1, 7));
        queue.push(10, 1);
        assert_eq!((queue.take_batch(), queue.dropped_count()), (vec![], 8));
    }

    #[test]
    fn a_batch_is_bounded_by_number_and_by_bytes() {
        let queue = SignalQueue::new(10_000, 1 << 30);
        (0..1000).for_each(|item| queue.push(item, 1));
        assert_eq!(
            [queue.take_batch().len(), queue.take_batch().len()],
            [512, 488]
        );
        (0..10).for_each(|item| queue.push(item, MAX_BATCH_BYTES / 2));
        assert_eq!(queue.take_batch(), [0, 1]);
        queue.push(10, 5 * MAX_BATCH_BYTES);
        assert_eq!(queue.take_batch().len(), 2);
    }

    #[tokio::test]
    async fn waiters_are_woken_for_the_first_item_and_for_a_batch() {
        let queue = std::sync::Arc::new(SignalQueue::new(1000, 1 << 20));
        let spawn_waiter = |count| {
            let queue = std::sync::Arc::clone(&queue);
            tokio::spawn(async move { queue.wait_for_items(count).await })
        };
        let first = spawn_waiter(1);
        tokio::task::yield_now().await;
        queue.push(0, 1);
        first.await.unwrap();
        let all = spawn_waiter(MAX_BATCH_ITEMS);
        tokio::task::yield_now().await;
        (1..MAX_BATCH_ITEMS).for_each(|item| queue.push(item, 1));
        all.await.unwrap();
    }
}
