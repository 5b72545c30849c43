//! What is kept of tasks, and for how long.

use std::time::Duration;

use bytesize::ByteSize;

/// Options of tasks.
#[derive(Clone, Copy, Debug)]
pub struct TaskOptions {
    /// Tasks of one caller that are kept at once.
    pub each: usize,
    /// Tasks of all callers that are kept at once.
    pub all: usize,
    /// Bytes of all tasks: mostly results. One caller can have a quarter of it.
    pub memory: ByteSize,
    /// For how long a task is kept after it was created, unless its client asks for less.
    pub ttl: Duration,
    /// How long a call may take before it becomes a task, where the server decides that.
    pub after: Duration,
}

impl Default for TaskOptions {
    fn default() -> Self {
        Self {
            each: 1_000,
            all: 4_000,
            memory: ByteSize::mib(64),
            ttl: Duration::from_hours(1),
            after: Duration::from_millis(500),
        }
    }
}
