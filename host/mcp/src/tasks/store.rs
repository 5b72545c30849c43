//! The interface to the storage of tasks.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use tokio::time::Instant;
use toolbay_background::QuotaExhausted;

use super::task_state::Task;
use crate::protocol::revision::Revision;

/// Storage of tasks. Each task is visible only to its caller. Only the store decides when a task
/// expires: the caller can request the task until the store removes it.
pub(crate) trait TaskStore: Send + Sync {
    /// Stores a new task of `owner` until `expires_at`.
    ///
    /// # Errors
    ///
    /// There is no capacity for the task.
    fn add<'a>(
        &'a self,
        owner: &'a str,
        task: &'a Arc<Task>,
        expires_at: Instant,
    ) -> BoxFuture<'a, Result<(), QuotaExhausted>>;

    /// Reserves this many bytes for questions or a result, before they are stored.
    ///
    /// # Errors
    ///
    /// There is no capacity, or the store no longer has the task.
    fn reserve<'a>(
        &'a self,
        owner: &'a str,
        id: &'a str,
        bytes: usize,
    ) -> BoxFuture<'a, Result<(), ReservationError>>;

    /// Stores the new state of a task, for which capacity is reserved, and releases the surplus.
    /// Does nothing if the store no longer has the task.
    fn update<'a>(&'a self, owner: &'a str, task: &'a Arc<Task>) -> BoxFuture<'a, ()>;

    /// Returns the task of `owner` with this id.
    fn get<'a>(&'a self, owner: &'a str, id: &'a str) -> BoxFuture<'a, Option<Arc<Task>>>;

    /// Returns at most `limit` tasks of `owner` for clients of this revision, those after `after`,
    /// in the order of their ids.
    fn list<'a>(
        &'a self,
        owner: &'a str,
        after: Option<&'a str>,
        limit: usize,
        revision: Revision,
    ) -> BoxFuture<'a, Vec<Arc<Task>>>;

    /// Removes a task.
    fn remove<'a>(&'a self, owner: &'a str, id: &'a str) -> BoxFuture<'a, ()>;

    /// Removes all tasks of a caller.
    fn remove_owner(&self, owner: &str);

    /// Removes the expired tasks.
    fn expire(&self) -> BoxFuture<'_, ExpiredTasks>;
}

/// The reason that no bytes can be reserved for a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReservationError {
    /// The caller, or all callers together, have reached their limit.
    Exhausted(QuotaExhausted),
    /// The store no longer has the task.
    Removed,
}

/// Tasks that were removed because they have expired.
pub(crate) struct ExpiredTasks {
    /// The ids of these tasks.
    pub(crate) ids: Vec<Arc<str>>,
    /// The time at which the next task expires; `None` if there is no other.
    pub(crate) next: Option<Instant>,
}
