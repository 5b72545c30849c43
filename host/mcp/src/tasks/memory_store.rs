//! A store of tasks in memory, with limits on their number and bytes, per caller and in total.

use std::collections::{BTreeMap, HashMap};
use std::future::ready;
use std::ops::Bound;
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use parking_lot::{Mutex, MutexGuard};
use tokio::time::Instant;
use toolbay_background::{QuotaExhausted, QuotaPortion, SharedQuota};

use super::options::TaskOptions;
use super::store::{ExpiredTasks, ReservationError, TaskStore};
use super::task_state::{TASK_OVERHEAD_BYTES, Task, TaskState};
use crate::protocol::revision::Revision;

/// One caller can use the total bytes divided by this.
const CALLER_SHARE_DIVISOR: usize = 4;

/// A store whose tasks end with the process.
pub(super) struct MemoryTaskStore {
    tables: Mutex<TaskTables>,
    count_quota: Arc<SharedQuota>,
    byte_quota: Arc<SharedQuota>,
}

#[derive(Default)]
struct TaskTables {
    /// The tasks of each caller, by id.
    callers: HashMap<Arc<str>, BTreeMap<Arc<str>, StoredTask>>,
    /// The owner of each task, in order of expiry.
    by_expiry: BTreeMap<(Instant, Arc<str>), Arc<str>>,
}

struct StoredTask {
    task: Arc<Task>,
    expires_at: Instant,
    /// The bytes that the task occupies or has reserved.
    bytes: QuotaPortion,
    _count: QuotaPortion,
}

impl MemoryTaskStore {
    pub(super) fn new(options: &TaskOptions) -> Self {
        let bytes = usize::try_from(options.memory.as_u64()).unwrap_or(usize::MAX);
        Self {
            tables: Mutex::default(),
            count_quota: SharedQuota::new(options.total, options.per_caller),
            byte_quota: SharedQuota::new(bytes, bytes / CALLER_SHARE_DIVISOR),
        }
    }

    fn insert(
        &self,
        owner: &str,
        task: &Arc<Task>,
        expires_at: Instant,
    ) -> Result<(), QuotaExhausted> {
        let mut tables = self.lock_tables();
        let reserve = || {
            Ok((
                self.count_quota.try_reserve(owner, 1)?,
                self.byte_quota.try_reserve(owner, task.size())?,
            ))
        };
        let (number, bytes) = match reserve() {
            Ok(portions) => portions,
            Err(exhausted) if tables.remove_cancelled(owner) == 0 => return Err(exhausted),
            Err(_) => reserve()?,
        };
        let stored = StoredTask {
            task: Arc::clone(task),
            expires_at,
            bytes,
            _count: number,
        };
        let owner: Arc<str> = owner.into();
        tables
            .by_expiry
            .insert((expires_at, Arc::clone(&task.id)), Arc::clone(&owner));
        tables
            .callers
            .entry(owner)
            .or_default()
            .insert(Arc::clone(&task.id), stored);
        Ok(())
    }

    fn reserve_bytes(&self, owner: &str, id: &str, bytes: usize) -> Result<(), ReservationError> {
        let mut tables = self.lock_tables();
        let size = TASK_OVERHEAD_BYTES + bytes;
        let grow = |tables: &mut TaskTables| {
            let stored = tables.get_mut(owner, id).ok_or(ReservationError::Removed)?;
            stored
                .bytes
                .grow_to(size)
                .map_err(ReservationError::Exhausted)
        };
        match grow(&mut tables) {
            Err(ReservationError::Exhausted(_)) if tables.remove_cancelled(owner) > 0 => {
                grow(&mut tables)
            }
            outcome => outcome,
        }
    }

    // Held while a table is searched or changed, and never across an await.
    fn lock_tables(&self) -> MutexGuard<'_, TaskTables> {
        self.tables.lock()
    }
}

impl TaskTables {
    /// Returns a task that has not expired.
    fn get(&self, owner: &str, id: &str) -> Option<&StoredTask> {
        self.callers
            .get(owner)?
            .get(id)
            .filter(|stored| stored.expires_at > Instant::now())
    }

    fn get_mut(&mut self, owner: &str, id: &str) -> Option<&mut StoredTask> {
        self.callers
            .get_mut(owner)?
            .get_mut(id)
            .filter(|stored| stored.expires_at > Instant::now())
    }

    fn remove(&mut self, owner: &str, id: &str) {
        let Some(tasks) = self.callers.get_mut(owner) else {
            return;
        };
        if let Some((id, stored)) = tasks.remove_entry(id) {
            self.by_expiry.remove(&(stored.expires_at, id));
        }
        if tasks.is_empty() {
            self.callers.remove(owner);
        }
    }

    /// Removes the cancelled tasks of a caller. They have no result, so no client needs them.
    /// Returns the number of removed tasks.
    fn remove_cancelled(&mut self, owner: &str) -> usize {
        let tasks = self.callers.get(owner);
        let cancelled = tasks
            .into_iter()
            .flatten()
            .filter(|(_, stored)| matches!(stored.task.state, TaskState::Cancelled));
        let cancelled: Vec<Arc<str>> = cancelled.map(|(id, _)| Arc::clone(id)).collect();
        for id in &cancelled {
            self.remove(owner, id);
        }
        cancelled.len()
    }
}

impl TaskStore for MemoryTaskStore {
    fn add<'a>(
        &'a self,
        owner: &'a str,
        task: &'a Arc<Task>,
        expires_at: Instant,
    ) -> BoxFuture<'a, Result<(), QuotaExhausted>> {
        ready(self.insert(owner, task, expires_at)).boxed()
    }

    fn reserve<'a>(
        &'a self,
        owner: &'a str,
        id: &'a str,
        bytes: usize,
    ) -> BoxFuture<'a, Result<(), ReservationError>> {
        ready(self.reserve_bytes(owner, id, bytes)).boxed()
    }

    fn update<'a>(&'a self, owner: &'a str, task: &'a Arc<Task>) -> BoxFuture<'a, ()> {
        if let Some(stored) = self.lock_tables().get_mut(owner, &task.id) {
            stored.bytes.shrink_to(task.size());
            stored.task = Arc::clone(task);
        }
        ready(()).boxed()
    }

    fn get<'a>(&'a self, owner: &'a str, id: &'a str) -> BoxFuture<'a, Option<Arc<Task>>> {
        let tables = self.lock_tables();
        ready(tables.get(owner, id).map(|stored| Arc::clone(&stored.task))).boxed()
    }

    fn list<'a>(
        &'a self,
        owner: &'a str,
        after: Option<&'a str>,
        limit: usize,
        revision: Revision,
    ) -> BoxFuture<'a, Vec<Arc<Task>>> {
        let tables = self.lock_tables();
        let now = Instant::now();
        let after = after.map_or(Bound::Unbounded, Bound::Excluded);
        let tasks = tables
            .callers
            .get(owner)
            .map(|tasks| tasks.range::<str, _>((after, Bound::Unbounded)));
        let unexpired = tasks
            .into_iter()
            .flatten()
            .map(|(_, stored)| stored)
            .filter(|stored| stored.expires_at > now);
        let visible = unexpired
            .map(|stored| &stored.task)
            .filter(|task| task.is_visible_to(revision));
        ready(visible.take(limit).map(Arc::clone).collect()).boxed()
    }

    fn remove<'a>(&'a self, owner: &'a str, id: &'a str) -> BoxFuture<'a, ()> {
        self.lock_tables().remove(owner, id);
        ready(()).boxed()
    }

    fn remove_owner(&self, owner: &str) {
        let mut tables = self.lock_tables();
        for (id, stored) in tables.callers.remove(owner).into_iter().flatten() {
            tables.by_expiry.remove(&(stored.expires_at, id));
        }
    }

    fn expire(&self) -> BoxFuture<'_, ExpiredTasks> {
        let mut tables = self.lock_tables();
        let now = Instant::now();
        let mut ids = Vec::new();
        while let Some(first) = tables
            .by_expiry
            .first_entry()
            .filter(|first| first.key().0 <= now)
        {
            let ((_, id), owner) = first.remove_entry();
            tables.remove(&owner, &id);
            ids.push(id);
        }
        let next = tables
            .by_expiry
            .keys()
            .next()
            .map(|(expires_at, _)| *expires_at);
        ready(ExpiredTasks { ids, next }).boxed()
    }
}
