//! Queue of notifications, which no caller can fill.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::Notify;

/// Maximum number of notifications that wait to be sent.
pub(super) const MAX_QUEUED: usize = 32;

/// Maximum number of waiting notifications about calls of one caller.
const MAX_QUEUED_PER_CALLER: usize = MAX_QUEUED / 4;

/// Maximum number of notifications about calls of one caller that are queued in [`PERIOD`], so that
/// no caller occupies the receiver.
const MAX_PER_PERIOD: usize = 10;

/// Period of the limit, and minimum time between two log lines about omitted notifications.
const PERIOD: Duration = Duration::from_mins(1);

/// Maximum number of notifications that count for the limit. Beyond it, the oldest is forgotten.
const MAX_RECENT: usize = 1_000;

/// The notifications that wait to be sent.
#[derive(Debug, Default)]
pub(super) struct NoticeQueue {
    state: Mutex<QueueState>,
    /// Notified when a notification is added.
    added: Notify,
}

#[derive(Debug, Default)]
struct QueueState {
    waiting: VecDeque<QueuedNotice>,
    /// The callers of recent notifications, with the time at which they were queued.
    recent: VecDeque<(Instant, String)>,
    /// Number of omitted notifications since the last log line about them.
    omitted: u64,
    /// Time of that line.
    reported: Option<Instant>,
}

#[derive(Debug)]
struct QueuedNotice {
    id: u64,
    caller: String,
    text: String,
}

impl NoticeQueue {
    /// Adds a notification about the call `id`. If it is omitted because there are too many, returns
    /// the number of omitted ones to log, unless a log line was due recently.
    pub(super) fn add(&self, id: u64, caller: &str, text: String, now: Instant) -> Option<u64> {
        // Held for a few comparisons and never across an await.
        let mut state = self.state.lock();
        while state
            .recent
            .front()
            .is_some_and(|(at, _)| now.saturating_duration_since(*at) >= PERIOD)
        {
            state.recent.pop_front();
        }
        let waiting = state.waiting.iter();
        let waiting_count = waiting.filter(|notice| notice.caller == caller).count();
        let recent = state.recent.iter();
        let recent_count = recent.filter(|(_, one)| one == caller).count();
        if state.waiting.len() >= MAX_QUEUED
            || waiting_count >= MAX_QUEUED_PER_CALLER
            || recent_count >= MAX_PER_PERIOD
        {
            state.omitted += 1;
            let is_due = state
                .reported
                .is_none_or(|at| now.saturating_duration_since(at) >= PERIOD);
            if !is_due {
                return None;
            }
            state.reported = Some(now);
            return Some(std::mem::take(&mut state.omitted));
        }
        if state.recent.len() >= MAX_RECENT {
            state.recent.pop_front();
        }
        state.recent.push_back((now, caller.to_owned()));
        state.waiting.push_back(QueuedNotice {
            id,
            caller: caller.to_owned(),
            text,
        });
        drop(state);
        self.added.notify_one();
        None
    }

    /// Removes the notification about a call that no longer waits.
    pub(super) fn withdraw(&self, id: u64) {
        self.state.lock().waiting.retain(|notice| notice.id != id);
    }

    /// Takes the oldest notification. Waits until there is one.
    pub(super) async fn next(&self) -> String {
        loop {
            // In a separate statement, so that the lock is released before the wait.
            let first = self.state.lock().waiting.pop_front();
            if let Some(notice) = first {
                return notice.text;
            }
            self.added.notified().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    fn taken(queue: &NoticeQueue) -> Option<String> {
        queue.next().now_or_never()
    }

    #[test]
    fn one_caller_fills_neither_the_queue_nor_the_log() {
        let queue = NoticeQueue::default();
        let now = Instant::now();
        let mut lines = 0;
        for id in 0..1_000 {
            lines += usize::from(queue.add(id, "a", id.to_string(), now).is_some());
        }
        assert_eq!(lines, 1);
        assert_eq!(queue.add(2_000, "b", "b".to_owned(), now), None);
        for id in 0..MAX_QUEUED_PER_CALLER {
            assert_eq!(taken(&queue), Some(id.to_string()));
        }
        assert_eq!(taken(&queue).as_deref(), Some("b"));
        assert_eq!(taken(&queue), None);
        // Sent ones count for a minute.
        let added = (0..9)
            .filter(|id| {
                queue.add(*id, "a", String::new(), now);
                taken(&queue).is_some()
            })
            .count();
        assert_eq!(added, MAX_PER_PERIOD - MAX_QUEUED_PER_CALLER);
        let later = now + PERIOD;
        assert_eq!(queue.add(1, "a", "later".to_owned(), later), None);
        assert_eq!(taken(&queue).as_deref(), Some("later"));
        for id in 0..1_000 {
            queue.add(id, "a", String::new(), later);
        }
        let omitted = queue.add(1, "a", String::new(), later + PERIOD / 2);
        assert_eq!(omitted, None);
    }

    #[test]
    fn many_callers_together_are_bounded_and_a_withdrawn_call_is_not_announced() {
        let queue = NoticeQueue::default();
        let now = Instant::now();
        for id in 0..2_000 {
            queue.add(id, &id.to_string(), id.to_string(), now);
        }
        queue.withdraw(0);
        queue.withdraw(2);
        assert_eq!(taken(&queue).as_deref(), Some("1"));
        assert_eq!(taken(&queue).as_deref(), Some("3"));
        let rest = std::iter::from_fn(|| taken(&queue)).count();
        assert_eq!(rest, MAX_QUEUED - 4);
        assert!(queue.state.lock().recent.len() <= MAX_RECENT);
    }
}
