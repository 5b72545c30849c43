//! A store of tasks in memory, with limits on their number and bytes, per caller and in total.

use parking_lot::{Mutex, MutexGuard};
use std::collections::{BTreeMap, HashMap};
use std::future::ready;
use std::ops::Bound;
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tokio::time::Instant;
use toolbay_background::{QuotaExhausted, QuotaPortion, SharedQuota};

use super::options::TaskOptions;
use super::store::{ExpiredTasks, NoRoom, TaskStore};
use super::task_state::{TASK_OVERHEAD_BYTES, Task, TaskState};
use crate::protocol::revision::Revision;

/// One caller can use the total bytes divided by this.
const CALLER_SHARE_DIVISOR: usize = 4;

/// A store whose tasks end with the process.
pub(super) struct InMemory {
    tables: Mutex<TaskTables>,
    number: Arc<SharedQuota>,
    bytes: Arc<SharedQuota>,
}

#[derive(Default)]
struct TaskTables {
    /// The tasks of each caller, by id.
    callers: HashMap<Arc<str>, BTreeMap<Arc<str>, FinishedTask>>,
    /// The owner of each task, in order of expiry.
    times: BTreeMap<(Instant, Arc<str>), Arc<str>>,
}

struct FinishedTask {
    task: Arc<Task>,
    until: Instant,
    /// The bytes that the task occupies or has reserved.
    bytes: QuotaPortion,
    _number: QuotaPortion,
}

impl InMemory {
    pub(super) fn new(options: &TaskOptions) -> Self {
        let bytes = usize::try_from(options.memory.as_u64()).unwrap_or(usize::MAX);
        Self {
            tables: Mutex::default(),
            number: SharedQuota::new(options.total, options.per_caller),
            bytes: SharedQuota::new(bytes, bytes / CALLER_SHARE_DIVISOR),
        }
    }

    fn insert(&self, owner: &str, task: &Arc<Task>, until: Instant) -> Result<(), QuotaExhausted> {
        let mut tables = self.lock_tables();
        let take = || {
            Ok((
                self.number.try_reserve(owner, 1)?,
                self.bytes.try_reserve(owner, task.size())?,
            ))
        };
        let (number, bytes) = match take() {
            Ok(room) => room,
            Err(exhausted) if tables.remove_cancelled(owner) == 0 => return Err(exhausted),
            Err(_) => take()?,
        };
        let kept = FinishedTask {
            task: Arc::clone(task),
            until,
            bytes,
            _number: number,
        };
        let owner: Arc<str> = owner.into();
        tables
            .times
            .insert((until, Arc::clone(&task.id)), Arc::clone(&owner));
        tables
            .callers
            .entry(owner)
            .or_default()
            .insert(Arc::clone(&task.id), kept);
        Ok(())
    }

    fn reserve_bytes(&self, owner: &str, id: &str, bytes: usize) -> Result<(), NoRoom> {
        let mut tables = self.lock_tables();
        let size = TASK_OVERHEAD_BYTES + bytes;
        let grow = |tables: &mut TaskTables| {
            let kept = tables.get_mut(owner, id).ok_or(NoRoom::Forgotten)?;
            kept.bytes.grow_to(size).map_err(NoRoom::Exhausted)
        };
        match grow(&mut tables) {
            Err(NoRoom::Exhausted(_)) if tables.remove_cancelled(owner) > 0 => grow(&mut tables),
            held => held,
        }
    }

    // Held while a table is searched or changed, and never across an await.
    fn lock_tables(&self) -> MutexGuard<'_, TaskTables> {
        self.tables.lock()
    }
}

impl TaskTables {
    /// Returns a task that has not expired.
    fn get(&self, owner: &str, id: &str) -> Option<&FinishedTask> {
        self.callers
            .get(owner)?
            .get(id)
            .filter(|kept| kept.until > Instant::now())
    }

    fn get_mut(&mut self, owner: &str, id: &str) -> Option<&mut FinishedTask> {
        self.callers
            .get_mut(owner)?
            .get_mut(id)
            .filter(|kept| kept.until > Instant::now())
    }

    fn remove(&mut self, owner: &str, id: &str) {
        let Some(own) = self.callers.get_mut(owner) else {
            return;
        };
        if let Some((id, kept)) = own.remove_entry(id) {
            self.times.remove(&(kept.until, id));
        }
        if own.is_empty() {
            self.callers.remove(owner);
        }
    }

    /// Removes the cancelled tasks of a caller. They have no result, so no client needs them.
    /// Returns the number of removed tasks.
    fn remove_cancelled(&mut self, owner: &str) -> usize {
        let own = self.callers.get(owner);
        let cancelled = own
            .into_iter()
            .flatten()
            .filter(|(_, kept)| matches!(kept.task.state, TaskState::Cancelled));
        let cancelled: Vec<Arc<str>> = cancelled.map(|(id, _)| Arc::clone(id)).collect();
        for id in &cancelled {
            self.remove(owner, id);
        }
        cancelled.len()
    }
}

impl TaskStore for InMemory {
    fn add<'a>(
        &'a self,
        owner: &'a str,
        task: &'a Arc<Task>,
        until: Instant,
    ) -> BoxFuture<'a, Result<(), QuotaExhausted>> {
        ready(self.insert(owner, task, until)).boxed()
    }

    fn reserve<'a>(
        &'a self,
        owner: &'a str,
        id: &'a str,
        bytes: usize,
    ) -> BoxFuture<'a, Result<(), NoRoom>> {
        ready(self.reserve_bytes(owner, id, bytes)).boxed()
    }

    fn update<'a>(&'a self, owner: &'a str, task: &'a Arc<Task>) -> BoxFuture<'a, ()> {
        if let Some(kept) = self.lock_tables().get_mut(owner, &task.id) {
            kept.bytes.shrink_to(task.size());
            kept.task = Arc::clone(task);
        }
        ready(()).boxed()
    }

    fn get<'a>(&'a self, owner: &'a str, id: &'a str) -> BoxFuture<'a, Option<Arc<Task>>> {
        let tables = self.lock_tables();
        ready(tables.get(owner, id).map(|kept| Arc::clone(&kept.task))).boxed()
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
        let own = tables
            .callers
            .get(owner)
            .map(|own| own.range::<str, _>((after, Bound::Unbounded)));
        let kept = own
            .into_iter()
            .flatten()
            .map(|(_, kept)| kept)
            .filter(|kept| kept.until > now);
        let known = kept
            .map(|kept| &kept.task)
            .filter(|task| task.is_visible_to(revision));
        ready(known.take(limit).map(Arc::clone).collect()).boxed()
    }

    fn remove<'a>(&'a self, owner: &'a str, id: &'a str) -> BoxFuture<'a, ()> {
        self.lock_tables().remove(owner, id);
        ready(()).boxed()
    }

    fn remove_owner(&self, owner: &str) {
        let mut tables = self.lock_tables();
        for (id, kept) in tables.callers.remove(owner).into_iter().flatten() {
            tables.times.remove(&(kept.until, id));
        }
    }

    fn expire(&self) -> BoxFuture<'_, ExpiredTasks> {
        let mut tables = self.lock_tables();
        let now = Instant::now();
        let mut ids = Vec::new();
        while let Some(first) = tables
            .times
            .first_entry()
            .filter(|first| first.key().0 <= now)
        {
            let ((_, id), owner) = first.remove_entry();
            tables.remove(&owner, &id);
            ids.push(id);
        }
        let next = tables.times.keys().next().map(|(until, _)| *until);
        ready(ExpiredTasks { ids, next }).boxed()
    }
}
