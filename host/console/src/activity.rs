//! Records the activity of a server and retains the newest events for the pages.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crossbeam_queue::ArrayQueue;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;

use crate::approvals::{ApprovalNote, ApprovalQueue};
use crate::call_history::CallHistory;
use crate::call_note::CallNote;
use crate::chart_history::ChartHistory;
use crate::denials::{DenialLog, DenialNote};
use crate::log_lines::LogLines;
use crate::running_calls::{RunningCallEntry, RunningCallTable, RunningCalls, SharedRunningCalls};

/// Capacity of the queue of finished calls.
const CALL_QUEUE_CAPACITY: usize = 4_096;

/// Number of queued calls after which they are moved to the history. The queue does not fill up
/// before, so charts include all calls.
const DRAIN_THRESHOLD: usize = CALL_QUEUE_CAPACITY / 4;

/// Capacity of the queue of denials, which are rare.
const DENIAL_QUEUE_CAPACITY: usize = 512;

/// The recorded activity of a server.
///
/// A finished call is pushed to a lock-free queue, and wakes a task only once per thousand calls.
/// Log lines and approvals are rare enough for a lock that is held for a few instructions.
pub struct ServerActivity {
    calls: ArrayQueue<CallNote>,
    denials: ArrayQueue<DenialNote>,
    /// Number of calls that were lost because the queue was full.
    lost_calls: AtomicU64,
    /// Notified when the queue has many calls.
    drain_signal: Notify,
    history: Mutex<CallHistory>,
    denial_log: Mutex<DenialLog>,
    approvals: Mutex<ApprovalQueue>,
    log: Mutex<LogLines>,
    running: SharedRunningCalls,
    /// Start of the recording, in words.
    since: &'static str,
}

impl Default for ServerActivity {
    fn default() -> Self {
        Self {
            calls: ArrayQueue::new(CALL_QUEUE_CAPACITY),
            denials: ArrayQueue::new(DENIAL_QUEUE_CAPACITY),
            lost_calls: AtomicU64::default(),
            drain_signal: Notify::new(),
            history: Mutex::default(),
            denial_log: Mutex::default(),
            approvals: Mutex::default(),
            log: Mutex::default(),
            running: SharedRunningCalls::default(),
            since: "the server started",
        }
    }
}

impl fmt::Debug for ServerActivity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerActivity").finish_non_exhaustive()
    }
}

impl ServerActivity {
    /// Creates the activity of a console that is created on first use, which does not include
    /// earlier events.
    pub fn on_first_use() -> Self {
        Self {
            since: "the console was first opened",
            ..Self::default()
        }
    }

    /// Uses the running calls of this table, which can contain calls that began earlier.
    #[must_use]
    pub fn with_running_calls(self, table: &RunningCallTable) -> Self {
        Self {
            running: Arc::clone(&table.0),
            ..self
        }
    }

    /// Returns the running calls.
    pub fn running_calls(&self) -> RunningCallTable {
        RunningCallTable(Arc::clone(&self.running))
    }

    /// Returns the start of the recording, in words.
    pub(crate) fn since(&self) -> &'static str {
        self.since
    }

    /// Records a finished call. Does not block.
    pub fn record_call(&self, call: CallNote) {
        if self.calls.force_push(call.truncate_texts()).is_some() {
            self.lost_calls.fetch_add(1, Ordering::Relaxed);
        }
        if self.calls.len() >= DRAIN_THRESHOLD {
            self.drain_signal.notify_one();
        }
    }

    /// Records a denial. Does not block.
    pub fn record_denial(&self, denial: DenialNote) {
        drop(self.denials.force_push(denial.truncate_texts()));
    }

    /// Records an approval question or its outcome.
    pub fn record_approval(&self, approval: ApprovalNote) {
        lock(&self.approvals).add(approval);
    }

    /// Records log lines.
    pub fn record_log_lines(&self, lines: &str) {
        lock(&self.log).add(lines);
    }

    /// Moves queued calls to the history when there are many. Never returns.
    pub async fn drain_calls(self: Arc<Self>) {
        loop {
            self.drain_signal.notified().await;
            let activity = Arc::clone(&self);
            // Rendering a page can hold the lock.
            drop(tokio::task::spawn_blocking(move || drop(activity.lock_history())).await);
        }
    }

    /// Moves queued calls to the history, and returns it. While the guard is held, other readers
    /// wait, but calls do not.
    pub(crate) fn lock_history(&self) -> MutexGuard<'_, CallHistory> {
        let mut history = lock(&self.history);
        // Pop at most the current number: calls may arrive faster than they are moved.
        for _ in 0..self.calls.len() {
            let Some(call) = self.calls.pop() else { break };
            history.add(call);
        }
        history.lost = self.lost_calls.load(Ordering::Relaxed);
        history
    }

    /// Returns the statistics of all calls so far, over time.
    pub(crate) fn charts(&self) -> ChartHistory {
        self.lock_history().charts.clone()
    }

    /// Adds statistics of an earlier run of the server.
    pub(crate) fn add_charts(&self, earlier: &ChartHistory) {
        lock(&self.history).charts.merge(earlier);
    }

    /// Records that a call of `tool` begins. The call is listed until the entry is dropped.
    pub fn start_call(&self, caller: &str, tool: &str) -> RunningCallEntry {
        RunningCallEntry::new(&self.running, caller, tool)
    }

    /// Returns the running calls. The lock is held for a few instructions.
    pub(crate) fn lock_running(&self) -> MutexGuard<'_, RunningCalls> {
        lock(&self.running)
    }

    /// Moves queued denials to the log of denials, and returns it.
    pub(crate) fn lock_denials(&self) -> MutexGuard<'_, DenialLog> {
        let mut denials = lock(&self.denial_log);
        for _ in 0..self.denials.len() {
            let Some(denial) = self.denials.pop() else {
                break;
            };
            denials.add(denial);
        }
        denials
    }

    /// Returns the approval questions.
    pub(crate) fn lock_approvals(&self) -> MutexGuard<'_, ApprovalQueue> {
        lock(&self.approvals)
    }

    /// Returns the newest log lines.
    pub(crate) fn lock_log_lines(&self) -> MutexGuard<'_, LogLines> {
        lock(&self.log)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call_note::tests::note;
    use crate::denials::tests::denial;

    /// Pushes finished calls, some of which are lost.
    fn counted(activity: &ServerActivity) -> (u64, u64) {
        let history = activity.lock_history();
        (history.ended, history.lost)
    }

    #[test]
    fn full_queue_does_not_block_and_losses_are_counted() {
        let activity = ServerActivity::default();
        for _ in 0..CALL_QUEUE_CAPACITY + 10 {
            activity.record_call(note("t", "ok"));
        }
        assert_eq!(counted(&activity), (CALL_QUEUE_CAPACITY as u64, 10));
        for _ in 0..DENIAL_QUEUE_CAPACITY + 10 {
            activity.record_denial(denial("a", "x"));
        }
        assert_eq!(activity.lock_denials().count, DENIAL_QUEUE_CAPACITY as u64);
    }

    #[tokio::test]
    async fn task_drains_many_calls() {
        let activity = Arc::<ServerActivity>::default();
        let task = tokio::spawn(Arc::clone(&activity).drain_calls());
        for _ in 0..10 * CALL_QUEUE_CAPACITY {
            activity.record_call(note("t", "ok"));
            while activity.calls.len() >= DRAIN_THRESHOLD {
                tokio::task::yield_now().await;
            }
        }
        assert_eq!(counted(&activity), (10 * CALL_QUEUE_CAPACITY as u64, 0));
        task.abort();
    }
}
