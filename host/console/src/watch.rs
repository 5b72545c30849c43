//! Takes in what happens, and keeps the newest of it for whoever looks.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crossbeam_queue::ArrayQueue;
use tokio::sync::Notify;

use crate::approvals::{ApprovalNote, ApprovalQueue};
use crate::calls::CallNote;
use crate::denials::{DenialLog, DenialNote};
use crate::history::CallHistory;
use crate::log_lines::LogLines;

/// Calls that can end before somebody takes them in.
const CALLS: usize = 4_096;

/// Calls after which somebody does: no later, so that charts have all of them.
const MANY: usize = CALLS / 4;

/// The same of denied uses, which are rare.
const DENIALS: usize = 512;

/// What happens in a server.
///
/// A call leaves a note in a queue without a lock when it has been answered, and wakes a task only once in a thousand calls.
/// Lines of the log and approvals are rare enough for a lock that is held for a few instructions.
pub struct ServerActivity {
    calls: ArrayQueue<CallNote>,
    denials: ArrayQueue<DenialNote>,
    /// Calls that found the queue full.
    missed: AtomicU64,
    /// There are many calls in the queue.
    many: Notify,
    history: Mutex<CallHistory>,
    denied: Mutex<DenialLog>,
    approvals: Mutex<ApprovalQueue>,
    log: Mutex<LogLines>,
    /// Since when.
    since: &'static str,
}

impl Default for ServerActivity {
    fn default() -> Self {
        Self {
            calls: ArrayQueue::new(CALLS),
            denials: ArrayQueue::new(DENIALS),
            missed: AtomicU64::default(),
            many: Notify::new(),
            history: Mutex::default(),
            denied: Mutex::default(),
            approvals: Mutex::default(),
            log: Mutex::default(),
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
    /// For a console that is made when somebody opens it: what happened before is not there.
    pub fn later() -> Self {
        Self { since: "the console was first opened", ..Self::default() }
    }

    /// Since when it takes in what happens, in words.
    pub(crate) fn since(&self) -> &'static str {
        self.since
    }

    /// Takes note of a call that ended. Waits for nobody.
    pub fn call(&self, call: CallNote) {
        if self.calls.force_push(call.bounded()).is_some() {
            self.missed.fetch_add(1, Ordering::Relaxed);
        }
        if self.calls.len() >= MANY {
            self.many.notify_one();
        }
    }

    /// Takes note of a use that was denied. Waits for nobody.
    pub fn denied(&self, denial: DenialNote) {
        drop(self.denials.force_push(denial.bounded()));
    }

    /// Takes note of what came of asking a person about a call.
    pub fn approval(&self, approval: ApprovalNote) {
        locked(&self.approvals).add(approval);
    }

    /// Takes note of lines of the log.
    pub fn log(&self, lines: &str) {
        locked(&self.log).add(lines);
    }

    /// Takes calls in whenever there are many. Does not return.
    pub async fn take_in(self: Arc<Self>) {
        loop {
            self.many.notified().await;
            let watch = Arc::clone(&self);
            // Others may look at it meanwhile.
            drop(tokio::task::spawn_blocking(move || drop(watch.history())).await);
        }
    }

    /// The calls that ended so far. As long as this is held, others who look wait; calls do not.
    pub(crate) fn history(&self) -> MutexGuard<'_, CallHistory> {
        let mut history = locked(&self.history);
        // No more than there were: they may come faster than they are taken in.
        for _ in 0..self.calls.len() {
            let Some(call) = self.calls.pop() else { break };
            history.add(call);
        }
        history.missed = self.missed.load(Ordering::Relaxed);
        history
    }

    /// The uses that were denied so far.
    pub(crate) fn denials(&self) -> MutexGuard<'_, DenialLog> {
        let mut denied = locked(&self.denied);
        for _ in 0..self.denials.len() {
            let Some(denial) = self.denials.pop() else { break };
            denied.add(denial);
        }
        denied
    }

    /// The questions to people so far.
    pub(crate) fn approvals(&self) -> MutexGuard<'_, ApprovalQueue> {
        locked(&self.approvals)
    }

    /// The newest lines of the log.
    pub(crate) fn log_lines(&self) -> MutexGuard<'_, LogLines> {
        locked(&self.log)
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calls::tests::note;
    use crate::denials::tests::denial;

    /// Calls that ended, and those that were missed.
    fn counted(watch: &ServerActivity) -> (u64, u64) {
        let history = watch.history();
        (history.ended, history.missed)
    }

    #[test]
    fn nobody_waits_where_nobody_looks_and_what_is_missed_is_counted() {
        let watch = ServerActivity::default();
        for _ in 0..CALLS + 10 {
            watch.call(note("t", "ok"));
        }
        assert_eq!(counted(&watch), (CALLS as u64, 10));
        for _ in 0..DENIALS + 10 {
            watch.denied(denial("a", "x"));
        }
        assert_eq!(watch.denials().count, DENIALS as u64);
    }

    #[tokio::test]
    async fn many_calls_are_taken_in_by_the_task() {
        let watch = Arc::<ServerActivity>::default();
        let task = tokio::spawn(Arc::clone(&watch).take_in());
        for _ in 0..10 * CALLS {
            watch.call(note("t", "ok"));
            while watch.calls.len() >= MANY {
                tokio::task::yield_now().await;
            }
        }
        assert_eq!(counted(&watch), (10 * CALLS as u64, 0));
        task.abort();
    }
}
