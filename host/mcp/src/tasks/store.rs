//! Where tasks are kept.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use tokio::time::Instant;

use super::task::Task;
use crate::quota::QuotaExhausted;
use crate::revision::Revision;

/// Where tasks are kept, each for its caller and until its time is over. The store alone decides when that is: what it has
/// forgotten, nobody can ask for, and what it has not, everybody can who began it.
pub(crate) trait TaskStore: Send + Sync {
    /// Keeps a new task of `owner` until `until`.
    ///
    /// # Errors
    ///
    /// There is no room for it.
    fn add<'a>(
        &'a self,
        owner: &'a str,
        task: &'a Arc<Task>,
        until: Instant,
    ) -> BoxFuture<'a, Result<(), QuotaExhausted>>;

    /// Makes room for this many bytes of questions or of a result, before these are written.
    ///
    /// # Errors
    ///
    /// There is none, or the task is not known any more.
    fn reserve<'a>(&'a self, owner: &'a str, id: &'a str, bytes: usize) -> BoxFuture<'a, Result<(), NoRoom>>;

    /// Keeps what has become of a task, for which there is room; what it takes less is given back. A task that is not known
    /// any more stays unknown.
    fn update<'a>(&'a self, owner: &'a str, task: &'a Arc<Task>) -> BoxFuture<'a, ()>;

    /// The task of `owner` with this id.
    fn get<'a>(&'a self, owner: &'a str, id: &'a str) -> BoxFuture<'a, Option<Arc<Task>>>;

    /// At most `limit` tasks of `owner` for clients of this revision, in the order of their ids: those after `after`.
    fn list<'a>(
        &'a self,
        owner: &'a str,
        after: Option<&'a str>,
        limit: usize,
        revision: Revision,
    ) -> BoxFuture<'a, Vec<Arc<Task>>>;

    /// Forgets a task.
    fn remove<'a>(&'a self, owner: &'a str, id: &'a str) -> BoxFuture<'a, ()>;

    /// Forgets the tasks whose time is over.
    fn expire(&self) -> BoxFuture<'_, ExpiredTasks>;
}

/// Why there is no room for what a task is to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoRoom {
    /// The caller, or all callers together, have as much as they can have.
    Exhausted(QuotaExhausted),
    /// The task is not known any more.
    Forgotten,
}

/// What was forgotten because its time was over.
pub(crate) struct ExpiredTasks {
    /// The ids of these tasks.
    pub(crate) ids: Vec<Arc<str>>,
    /// When the time of the next one is over; `None` if there is no other.
    pub(crate) next: Option<Instant>,
}
