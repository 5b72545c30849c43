//! Tasks in memory: bounded in number and in bytes, of each caller and of all.

use std::collections::{BTreeMap, HashMap};
use std::future::ready;
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;

use super::options::TaskOptions;
use super::store::TaskStore;
use super::task::{State, Task};
use crate::quota::{Exhausted, Portion, Quota};
use crate::revision::Revision;

/// So many callers can have as much as there is for all.
const SHARES: usize = 4;

/// Tasks that end with the program.
pub(super) struct InMemory {
    tasks: Mutex<ByCaller>,
    number: Arc<Quota>,
    bytes: Arc<Quota>,
}

/// The tasks of each caller, by id.
type ByCaller = HashMap<Box<str>, BTreeMap<Arc<str>, Kept>>;

struct Kept {
    task: Arc<Task>,
    /// What it takes.
    size: usize,
    bytes: Portion,
    _number: Portion,
}

impl InMemory {
    pub(super) fn new(options: &TaskOptions) -> Self {
        let bytes = usize::try_from(options.memory.as_u64()).unwrap_or(usize::MAX);
        Self {
            tasks: Mutex::default(),
            number: Quota::new(options.all, options.each),
            bytes: Quota::new(bytes, bytes / SHARES),
        }
    }

    fn keep(&self, owner: &str, task: &Arc<Task>) -> Result<(), Exhausted> {
        let size = task.size();
        let mut tasks = self.tasks();
        if let Some(kept) = tasks.get_mut(owner).and_then(|own| own.get_mut(&task.id)) {
            kept.bytes.grow(size.saturating_sub(kept.size))?;
            kept.bytes.shrink_to(size);
            (kept.size, kept.task) = (size, Arc::clone(task));
            return Ok(());
        }
        let room = || Ok((self.number.take(owner, 1)?, self.bytes.take(owner, size)?));
        let (number, bytes) = match room() {
            Ok(room) => room,
            Err(exhausted) => {
                // What was cancelled has no result: nobody needs it.
                let own = tasks.get_mut(owner).ok_or(exhausted)?;
                own.retain(|_, kept| !matches!(kept.task.state, State::Cancelled));
                room()?
            }
        };
        let kept = Kept { task: Arc::clone(task), size, bytes, _number: number };
        tasks.entry(owner.into()).or_default().insert(Arc::clone(&task.id), kept);
        Ok(())
    }

    // Held while a table is searched or changed, and never across an await.
    fn tasks(&self) -> MutexGuard<'_, ByCaller> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TaskStore for InMemory {
    fn put<'a>(&'a self, owner: &'a str, task: &'a Arc<Task>) -> BoxFuture<'a, Result<(), Exhausted>> {
        ready(self.keep(owner, task)).boxed()
    }

    fn get<'a>(&'a self, owner: &'a str, id: &'a str) -> BoxFuture<'a, Option<Arc<Task>>> {
        let tasks = self.tasks();
        let kept = tasks.get(owner).and_then(|own| own.get(id));
        ready(kept.map(|kept| Arc::clone(&kept.task))).boxed()
    }

    fn list<'a>(
        &'a self,
        owner: &'a str,
        after: Option<&'a str>,
        limit: usize,
        revision: Revision,
    ) -> BoxFuture<'a, Vec<Arc<Task>>> {
        let tasks = self.tasks();
        let after = after.map_or(Bound::Unbounded, Bound::Excluded);
        let own = tasks.get(owner).map(|own| own.range::<str, _>((after, Bound::Unbounded)));
        let known = own.into_iter().flatten().map(|(_, kept)| &kept.task).filter(|task| task.is_of(revision));
        ready(known.take(limit).map(Arc::clone).collect()).boxed()
    }

    fn remove<'a>(&'a self, owner: &'a str, id: &'a str) -> BoxFuture<'a, ()> {
        let mut tasks = self.tasks();
        if let Some(own) = tasks.get_mut(owner) {
            own.remove(id);
            if own.is_empty() {
                tasks.remove(owner);
            }
        }
        ready(()).boxed()
    }
}
