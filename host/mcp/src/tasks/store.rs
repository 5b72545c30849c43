//! Where tasks are kept.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::task::Task;
use crate::quota::Exhausted;
use crate::revision::Revision;

/// Where tasks are kept, each for its caller. What a store forgets early, no client can ask for: a store keeps each task
/// until its time is over, or refuses it.
pub(crate) trait TaskStore: Send + Sync {
    /// Keeps a task of `owner` in place of what was known of it.
    ///
    /// # Errors
    ///
    /// There is no room for it. What was known of it stays.
    fn put<'a>(&'a self, owner: &'a str, task: &'a Arc<Task>) -> BoxFuture<'a, Result<(), Exhausted>>;

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
}
