//! The sequence of operations of each task. It is the same in the process that is killed and in the
//! one that checks.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use bytesize::ByteSize;
use toolbay_state::{BucketChange, StateBucket, StateOwner, StateQuota};

/// Number of keys of a task.
const KEYS: u64 = 97;

/// Quota of the state that all tasks share.
pub(crate) const SHARED: StateQuota = StateQuota {
    size: ByteSize::kib(48),
    keys: 60,
};

/// Quota of a task's own state: more than it needs.
pub(crate) const AMPLE: StateQuota = StateQuota {
    size: ByteSize::mib(10),
    keys: 1_000,
};

/// The key of a task's counter.
const COUNTER: &str = "counter";

/// A task and its expected state.
pub(crate) struct Task {
    index: usize,
    done: u64,
    kept: BTreeMap<String, Vec<u8>>,
}

impl Task {
    pub(crate) fn new(index: usize) -> Self {
        Self {
            index,
            done: 0,
            kept: BTreeMap::new(),
        }
    }

    /// Returns the number of completed operations.
    pub(crate) fn done(&self) -> u64 {
        self.done
    }

    /// Returns the expected state after these operations.
    pub(crate) fn kept(&self) -> &BTreeMap<String, Vec<u8>> {
        &self.kept
    }

    /// Records that the operation with this number is complete.
    pub(crate) fn acknowledge(&mut self, number: u64) -> Result<()> {
        ensure!(
            number == self.done,
            "task {} did {number} after {} operations",
            self.index,
            self.done
        );
        self.advance();
        Ok(())
    }

    /// Applies the next operation to the expected state.
    pub(crate) fn advance(&mut self) {
        match change(self.done) {
            BucketChange::Set(entries) => self.kept.extend(entries),
            BucketChange::Delete(keys) => self.kept.retain(|key, _| !keys.contains(key)),
            BucketChange::Increment { key, .. } => {
                let before = self
                    .kept
                    .get(&key)
                    .and_then(|value| std::str::from_utf8(value).ok()?.parse::<i128>().ok());
                self.kept
                    .insert(key, (before.unwrap_or(0) + 1).to_string().into_bytes());
            }
            BucketChange::Swap { key, value, .. } => drop(self.kept.insert(key, value)),
        }
        self.done += 1;
    }

    /// Returns the bucket of the task.
    pub(crate) fn bucket(&self) -> Result<StateBucket> {
        bucket(self.index)
    }
}

/// Returns the bucket of a task. Each task is a plugin.
pub(crate) fn bucket(task: usize) -> Result<StateBucket> {
    Ok(StateBucket::new(
        StateOwner {
            plugin: format!("task-{task}").into(),
            caller: None,
        },
        "",
    )?)
}

/// Returns the bucket that all tasks share.
pub(crate) fn shared() -> Result<StateBucket> {
    Ok(StateBucket::new(
        StateOwner {
            plugin: "shared".into(),
            caller: None,
        },
        "",
    )?)
}

/// Returns the operation of a task with this number.
pub(crate) fn change(number: u64) -> BucketChange {
    let key = |number: u64| format!("key-{}", number * 31 % KEYS);
    let value = |number: u64| {
        let mut value = number.to_string().into_bytes();
        value.resize(usize::try_from(number % 613).unwrap_or_default() + 20, b'.');
        value
    };
    match number % 10 {
        0..=4 => BucketChange::Set(vec![(key(number), value(number))]),
        5 | 6 => BucketChange::Set((number..number + 3).map(|n| (key(n), value(n))).collect()),
        7 => BucketChange::Delete(vec![key(number), key(number + 1)]),
        _ => BucketChange::Increment {
            key: COUNTER.to_owned(),
            delta: 1,
            range: 0..=i128::from(u64::MAX),
        },
    }
}

/// Returns the operation that a task tries on the shared state after the operation with this
/// number, if any.
pub(crate) fn attempt(task: usize, number: u64) -> Option<BucketChange> {
    let key = || format!("{}", (number + task as u64 * 7) % 90);
    match number % 8 {
        0 | 3 => Some(BucketChange::Set(vec![(
            key(),
            vec![0; usize::try_from(number * 37 % 3_000).unwrap_or_default()],
        )])),
        5 => Some(BucketChange::Delete(vec![key()])),
        _ => None,
    }
}
