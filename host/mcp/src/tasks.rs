//! Tasks: calls that continue after their request has ended, and whose results are stored for their
//! callers.
//!
//! A task begins like any other call. A [`Task`] is its state as clients receive it. The task is in
//! the table of live tasks while the call runs, and in the `store` until the store removes it. It
//! belongs to its caller, and not to a request, session or connection.

mod expiry;
mod memory_store;
mod observer;
mod options;
mod running_tasks;
mod store;
mod task_state;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use parking_lot::{Mutex, MutexGuard};
use tokio::time::Instant;
use tokio_util::task::TaskTracker;
use toolbay_background::QuotaExhausted;
use toolbay_model::Question;

use self::expiry::{ExpiringTable, ExpiryTimer};
use self::memory_store::MemoryTaskStore;
pub(crate) use self::observer::TaskObserver;
pub use self::options::TaskOptions;
pub(crate) use self::running_tasks::{AskedQuestions, LiveTask, TaskPhase};
pub(crate) use self::store::ReservationError;
use self::store::{ExpiredTasks, TaskStore};
pub(crate) use self::task_state::{
    Task, TaskEnd, TaskOutcome, TaskState, error_size, serialized_size,
};
use crate::protocol::jsonrpc::{Error, INTERNAL_ERROR};
use crate::protocol::revision::Revision;

/// Minimum time for which a result is stored: a client must have time to request it.
const MIN_TTL: Duration = Duration::from_secs(10);

/// Maximum time to wait for the guests of stopped tasks.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);

/// Number of random bytes in the id of a task.
const TASK_ID_BYTES: usize = 16;

/// The tasks of a server. Cheap to clone.
#[derive(Clone)]
pub struct TaskTable {
    inner: Arc<TasksInner>,
}

struct TasksInner {
    options: TaskOptions,
    /// Every task that was reported to a client, in its last stored state.
    store: Box<dyn TaskStore>,
    /// The tasks whose call runs or waits for answers.
    live: Mutex<HashMap<Arc<str>, Arc<LiveTask>>>,
    running: TaskTracker,
    expiry_timer: ExpiryTimer,
}

/// The reason that a task was not cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CancelError {
    /// The caller has no task with this id.
    Unknown,
    /// The task has ended.
    Ended,
}

impl fmt::Debug for TaskTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskTable").finish_non_exhaustive()
    }
}

impl TaskTable {
    /// Creates an empty table of tasks. Tasks end with the process.
    pub fn new(options: TaskOptions) -> Self {
        let inner = TasksInner {
            options,
            store: Box::new(MemoryTaskStore::new(&options)),
            live: Mutex::default(),
            running: TaskTracker::new(),
            expiry_timer: ExpiryTimer::default(),
        };
        Self {
            inner: Arc::new(inner),
        }
    }

    /// Stops the calls of all tasks, so that the tasks fail. Waits for their guests to end, for at
    /// most a few seconds.
    pub async fn stop(&self) {
        let running: Vec<_> = self.live_tasks().values().map(Arc::clone).collect();
        for live in running {
            let error = Error::new(
                INTERNAL_ERROR,
                "The task was stopped because the server is shutting down.",
            );
            live.set_state(TaskState::Ended(Arc::new(TaskEnd::failed(error))));
            live.cancel.cancel();
        }
        self.inner.running.close();
        drop(tokio::time::timeout(STOP_TIMEOUT, self.inner.running.wait()).await);
        self.inner.running.reopen();
    }

    /// Removes all tasks of a caller that no longer exists, and stops their calls. A later caller
    /// with the same name does not inherit them.
    pub fn remove_owner(&self, owner: &str) {
        self.inner.store.remove_owner(owner);
        self.live_tasks().retain(|_, live| {
            let is_other = *live.owner != *owner;
            if !is_other {
                live.set_state(TaskState::Cancelled);
                live.cancel.cancel();
            }
            is_other
        });
    }

    /// Returns the options.
    pub(crate) fn options(&self) -> &TaskOptions {
        &self.inner.options
    }

    /// Returns the task of this caller with this id, if it is visible to clients of this revision.
    pub(crate) async fn get(&self, owner: &str, id: &str, revision: Revision) -> Option<Arc<Task>> {
        if let Some(live) = self.get_live(owner, id) {
            return Some(live.task()).filter(|task| task.is_visible_to(revision));
        }
        self.inner
            .store
            .get(owner, id)
            .await
            .filter(|task| task.is_visible_to(revision))
    }

    /// Returns at most `limit` tasks of this caller, those after `after`, in the order of their
    /// ids. That is approximately the order in which they were created.
    pub(crate) async fn list(
        &self,
        owner: &str,
        after: Option<&str>,
        limit: usize,
        revision: Revision,
    ) -> Vec<Arc<Task>> {
        let stored = self.inner.store.list(owner, after, limit, revision).await;
        stored
            .into_iter()
            .map(|task| {
                self.get_live(owner, &task.id)
                    .map_or(task, |live| live.task())
            })
            .collect()
    }

    /// Cancels a task: stops its call and leaves it without a result.
    pub(crate) async fn cancel(
        &self,
        owner: &str,
        id: &str,
        revision: Revision,
    ) -> Result<Arc<Task>, CancelError> {
        let task = self
            .get(owner, id, revision)
            .await
            .ok_or(CancelError::Unknown)?;
        let Some(live) = self.get_live(owner, id) else {
            return if task.state.is_final() {
                Err(CancelError::Ended)
            } else {
                Err(CancelError::Unknown)
            };
        };
        if !live.set_state(TaskState::Cancelled) {
            return Err(CancelError::Ended);
        }
        live.cancel.cancel();
        let task = live.task();
        self.inner.store.update(owner, &task).await;
        Ok(task)
    }

    /// Returns the running call of a task of this caller; `None` if there is no such task, or if it
    /// has ended.
    pub(crate) fn get_live(&self, owner: &str, id: &str) -> Option<Arc<LiveTask>> {
        let now = Instant::now();
        self.live_tasks()
            .get(id)
            .filter(|live| *live.owner == *owner && live.expires_at > now)
            .map(Arc::clone)
    }

    /// Adds a task to the tables. This must succeed before the client receives the id.
    ///
    /// # Errors
    ///
    /// The caller, or all callers together, have reached the limit on the number of tasks or on
    /// their bytes.
    pub(crate) async fn register(&self, live: &Arc<LiveTask>) -> Result<(), QuotaExhausted> {
        let task = live.task();
        self.inner
            .store
            .add(&live.owner, &task, live.expires_at)
            .await?;
        self.live_tasks()
            .insert(Arc::clone(&task.id), Arc::clone(live));
        self.inner
            .expiry_timer
            .schedule(live.expires_at, &self.inner);
        Ok(())
    }

    /// Reserves this many bytes for the output of a task's call. This must succeed before the
    /// output is stored.
    ///
    /// # Errors
    ///
    /// The limit is reached, or the task has expired.
    pub(crate) async fn reserve(
        &self,
        live: &LiveTask,
        bytes: usize,
    ) -> Result<(), ReservationError> {
        self.inner
            .store
            .reserve(&live.owner, &live.task().id, bytes)
            .await
    }

    /// Asks these questions in a task, until the returned guard is dropped.
    ///
    /// # Errors
    ///
    /// There is no capacity for the questions, or the task has expired.
    pub(crate) async fn ask<'a>(
        &self,
        live: &'a LiveTask,
        questions: Vec<Question>,
    ) -> Result<AskedQuestions<'a>, ReservationError> {
        let task_questions = live.assign_keys(questions);
        self.reserve(live, task_questions.iter().map(|asked| asked.size()).sum())
            .await?;
        let asked_questions = live.ask(task_questions);
        self.inner.store.update(&live.owner, &live.task()).await;
        Ok(asked_questions)
    }

    /// Removes a task that was not reported to any client.
    pub(crate) async fn discard(&self, live: &LiveTask) {
        let task = live.task();
        self.live_tasks().remove(&task.id);
        self.inner.store.remove(&live.owner, &task.id).await;
    }

    /// Moves a task whose call has ended out of the table of running tasks. Capacity for its final
    /// state must be reserved. Afterwards, only the store has the task.
    pub(crate) async fn finish(&self, live: &LiveTask) {
        let task = live.task();
        self.inner.store.update(&live.owner, &task).await;
        self.live_tasks().remove(&task.id);
    }

    /// Returns the tracker of calls that are tasks, or may become tasks.
    pub(crate) fn running(&self) -> &TaskTracker {
        &self.inner.running
    }

    /// Creates a task of this caller without registering it; `None` if the system provides no
    /// random bytes.
    pub(crate) fn create(
        &self,
        owner: &str,
        revision: Revision,
        ttl: Option<Duration>,
        phase: TaskPhase,
    ) -> Option<Arc<LiveTask>> {
        let max_ttl = self.options().ttl;
        let ttl = ttl.unwrap_or(max_ttl).clamp(MIN_TTL.min(max_ttl), max_ttl);
        let now = SystemTime::now();
        let task = Task::new(new_id(now)?, revision, now, ttl);
        Some(Arc::new(LiveTask::new(
            owner,
            task,
            Instant::now() + ttl,
            phase,
        )))
    }

    fn live_tasks(&self) -> MutexGuard<'_, HashMap<Arc<str>, Arc<LiveTask>>> {
        self.inner.live_tasks()
    }
}

impl ExpiringTable for TasksInner {
    /// Stops the calls that still run.
    async fn remove_expired(&self) -> Option<Instant> {
        let ExpiredTasks { ids, next } = self.store.expire().await;
        for id in ids {
            let live = self.live_tasks().remove(&id);
            if let Some(live) = live {
                // No client can request the task any more, but a request may be waiting for it.
                live.set_state(TaskState::Cancelled);
                live.cancel.cancel();
            }
        }
        next
    }
}

impl TasksInner {
    // Held for a few instructions and never across an await.
    fn live_tasks(&self) -> MutexGuard<'_, HashMap<Arc<str>, Arc<LiveTask>>> {
        self.live.lock()
    }
}

/// Creates an id that cannot be guessed. Later ids are greater, except within a millisecond.
fn new_id(now: SystemTime) -> Option<Arc<str>> {
    let mut random = [0; TASK_ID_BYTES];
    getrandom::fill(&mut random).ok()?;
    let unix_time = now
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    Some(format!("{:012x}{}", unix_time.as_millis(), hex::encode(random)).into())
}
