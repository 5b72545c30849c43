//! Options for the storage and the lifetime of tasks.

use std::time::Duration;

use bytesize::ByteSize;

/// Options of tasks.
#[derive(Clone, Copy, Debug)]
pub struct TaskOptions {
    /// Maximum number of stored tasks of one caller.
    pub per_caller: usize,
    /// Maximum number of stored tasks of all callers.
    pub total: usize,
    /// Maximum size of all tasks: mostly results. One caller can use a quarter of it.
    pub memory: ByteSize,
    /// Time for which a task is stored after it was created, unless its client requests less.
    pub ttl: Duration,
    /// Time that a call may take before it becomes a task, if the server decides that.
    pub promotion_delay: Duration,
}

impl Default for TaskOptions {
    fn default() -> Self {
        Self {
            per_caller: 1_000,
            total: 4_000,
            memory: ByteSize::mib(64),
            ttl: Duration::from_hours(1),
            promotion_delay: Duration::from_millis(500),
        }
    }
}
