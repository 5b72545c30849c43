//! Tasks: calls that go on when their request has ended, and whose results are kept for their callers.
//!
//! A task begins as any call does, in `detached`. What clients are told of it is a [`Task`], which is `get_live` while the call
//! runs, and also in the `store` until its time is over, which the store decides. It belongs to no request, session or
//! connection, but to its caller.

mod expiry;
mod live;
mod memory;
mod observer;
mod options;
mod store;
mod task;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use tokio::time::Instant;
use tokio_util::task::TaskTracker;
use toolbay_model::Question;

use self::expiry::{ExpiringTable, ExpiryTimer};
pub(crate) use self::live::{AskedQuestions, LiveTask, TaskPhase};
use self::memory::InMemory;
pub(crate) use self::observer::TaskObserver;
pub use self::options::TaskOptions;
pub(crate) use self::store::NoRoom;
use self::store::{ExpiredTasks, TaskStore};
pub(crate) use self::task::{Task, TaskEnd, TaskOutcome, TaskState, error_size, serialized_size};
use crate::jsonrpc::{Error, INTERNAL_ERROR};
use crate::quota::QuotaExhausted;
use crate::revision::Revision;

/// Shortest time for which a result is kept: a client must be able to ask for it.
const MIN_TTL: Duration = Duration::from_secs(10);

/// Longest wait for the guests of tasks that were stopped.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);

/// Random bytes in the id of a task.
const TASK_ID_BYTES: usize = 16;

/// The tasks of a server. Cheap to clone.
#[derive(Clone)]
pub struct TaskTable {
    inner: Arc<TasksInner>,
}

struct TasksInner {
    options: TaskOptions,
    /// Every task that was told to a client, as far as it is known when nobody works on it.
    store: Box<dyn TaskStore>,
    /// Those whose call runs, or waits for answers.
    live: Mutex<HashMap<Arc<str>, Arc<LiveTask>>>,
    running: TaskTracker,
    alarm: ExpiryTimer,
}

/// Why a task was not cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotCancelled {
    /// The caller has no task with this id.
    Unknown,
    /// It has ended.
    Ended,
}

impl fmt::Debug for TaskTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tasks").finish_non_exhaustive()
    }
}

impl TaskTable {
    /// No tasks yet. They end with the program.
    pub fn new(options: TaskOptions) -> Self {
        let inner = TasksInner {
            options,
            store: Box::new(InMemory::new(&options)),
            live: Mutex::default(),
            running: TaskTracker::new(),
            alarm: ExpiryTimer::default(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Stops the calls of all tasks, which fail. Waits until their guests are gone, for at most some seconds.
    pub async fn stop(&self) {
        let running: Vec<_> = self.live_tasks().values().map(Arc::clone).collect();
        for live in running {
            let error = Error::new(INTERNAL_ERROR, "The task was stopped because the server is shutting down.");
            live.set_state(TaskState::Ended(Arc::new(TaskEnd::failed(error))));
            live.cancel.cancel();
        }
        self.inner.running.close();
        drop(tokio::time::timeout(STOP_TIMEOUT, self.inner.running.wait()).await);
        self.inner.running.reopen();
    }

    /// The options.
    pub(crate) fn options(&self) -> &TaskOptions {
        &self.inner.options
    }

    /// The task of this caller with this id, if a client of this revision can know it.
    pub(crate) async fn get(&self, owner: &str, id: &str, revision: Revision) -> Option<Arc<Task>> {
        if let Some(live) = self.get_live(owner, id) {
            return Some(live.task()).filter(|task| task.is_visible_to(revision));
        }
        self.inner.store.get(owner, id).await.filter(|task| task.is_visible_to(revision))
    }

    /// At most `limit` tasks of this caller in the order of their ids, which is about that in which they were created: those
    /// after `after`.
    pub(crate) async fn list(
        &self,
        owner: &str,
        after: Option<&str>,
        limit: usize,
        revision: Revision,
    ) -> Vec<Arc<Task>> {
        let kept = self.inner.store.list(owner, after, limit, revision).await;
        kept.into_iter().map(|task| self.get_live(owner, &task.id).map_or(task, |live| live.task())).collect()
    }

    /// Ends a task: its call is stopped, and it has no result.
    pub(crate) async fn cancel(&self, owner: &str, id: &str, revision: Revision) -> Result<Arc<Task>, NotCancelled> {
        let task = self.get(owner, id, revision).await.ok_or(NotCancelled::Unknown)?;
        let Some(live) = self.get_live(owner, id) else {
            return if task.state.is_final() { Err(NotCancelled::Ended) } else { Err(NotCancelled::Unknown) };
        };
        if !live.set_state(TaskState::Cancelled) {
            return Err(NotCancelled::Ended);
        }
        live.cancel.cancel();
        let task = live.task();
        self.inner.store.update(owner, &task).await;
        Ok(task)
    }

    /// The call of a task of this caller; `None` if there is no such task, or if it has ended.
    pub(crate) fn get_live(&self, owner: &str, id: &str) -> Option<Arc<LiveTask>> {
        let now = Instant::now();
        self.live_tasks().get(id).filter(|live| *live.owner == *owner && live.until > now).map(Arc::clone)
    }

    /// Makes a task known. Before its client learns its id, this must have succeeded.
    ///
    /// # Errors
    ///
    /// The caller, or all callers together, have as many tasks as they can have, or as many bytes of them.
    pub(crate) async fn register(&self, live: &Arc<LiveTask>) -> Result<(), QuotaExhausted> {
        let task = live.task();
        self.inner.store.add(&live.owner, &task, live.until).await?;
        self.live_tasks().insert(Arc::clone(&task.id), Arc::clone(live));
        self.inner.alarm.schedule(live.until, &self.inner);
        Ok(())
    }

    /// Makes room for this many bytes of what the call of a task returned. It must have succeeded before that is written.
    ///
    /// # Errors
    ///
    /// There is none, or the task's time is over.
    pub(crate) async fn reserve(&self, live: &LiveTask, bytes: usize) -> Result<(), NoRoom> {
        self.inner.store.reserve(&live.owner, &live.task().id, bytes).await
    }

    /// Asks these questions in a task, until what is returned is dropped.
    ///
    /// # Errors
    ///
    /// There is no room for them, or the task's time is over.
    pub(crate) async fn ask<'a>(
        &self,
        live: &'a LiveTask,
        questions: Vec<Question>,
    ) -> Result<AskedQuestions<'a>, NoRoom> {
        let asked = live.assign_keys(questions);
        self.reserve(live, asked.iter().map(|asked| asked.size()).sum()).await?;
        let asking = live.ask(asked);
        self.inner.store.update(&live.owner, &live.task()).await;
        Ok(asking)
    }

    /// Forgets a task that nobody has learned of.
    pub(crate) async fn discard(&self, live: &LiveTask) {
        let task = live.task();
        self.live_tasks().remove(&task.id);
        self.inner.store.remove(&live.owner, &task.id).await;
    }

    /// The call of a task has ended, in a state for which there is room. From now on, only the store knows it.
    pub(crate) async fn finish(&self, live: &LiveTask) {
        let task = live.task();
        self.inner.store.update(&live.owner, &task).await;
        self.live_tasks().remove(&task.id);
    }

    /// The futures of calls that are tasks, or may become some.
    pub(crate) fn running(&self) -> &TaskTracker {
        &self.inner.running
    }

    /// A new task of this caller, which nobody knows yet; `None` if the system provides no random bytes.
    pub(crate) fn create(
        &self,
        owner: &str,
        revision: Revision,
        ttl: Option<Duration>,
        phase: TaskPhase,
    ) -> Option<Arc<LiveTask>> {
        let longest = self.options().ttl;
        let ttl = ttl.unwrap_or(longest).clamp(MIN_TTL.min(longest), longest);
        let now = SystemTime::now();
        let task = Task::new(new_id(now)?, revision, now, ttl);
        Some(Arc::new(LiveTask::new(owner, task, Instant::now() + ttl, phase)))
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
                // Nobody can ask for it any more, but somebody may be waiting.
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
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An id that nobody can guess. Later ones are greater, except within a millisecond.
fn new_id(now: SystemTime) -> Option<Arc<str>> {
    let mut random = [0; TASK_ID_BYTES];
    getrandom::fill(&mut random).ok()?;
    let since = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Some(format!("{:012x}{}", since.as_millis(), hex::encode(random)).into())
}
