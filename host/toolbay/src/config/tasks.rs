//! `[tasks]`: calls that go on when their request has ended.

use std::time::Duration;

use bytesize::ByteSize;
use serde::Deserialize;
use toolbay_mcp::TaskOptions;
use toolbay_model::setting::positive;

use super::bounds::many;

/// Calls that go on when their request has ended, and what is kept of them (`[tasks]`). Which tools can be called as tasks is
/// said by their plugins, or in the grants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TasksConfig {
    /// Tasks of one caller that are kept at once, 1 to 1,000,000. Default: 1,000.
    #[serde(deserialize_with = "many")]
    pub each: usize,
    /// Tasks of all callers that are kept at once, 1 to 1,000,000. Default: 4,000.
    #[serde(deserialize_with = "many")]
    pub all: usize,
    /// Bytes of all tasks, mostly of their results, above 0; one caller can have a quarter. Default: 64 MiB.
    #[serde(deserialize_with = "positive")]
    pub memory: ByteSize,
    /// For how long a task is kept after it was created, above 0. Clients can ask for less. Default: 1 h.
    #[serde(deserialize_with = "positive")]
    pub ttl: Duration,
    /// How long a call runs before it becomes a task, where the server decides that (2026-07-28). Default: 500 ms.
    #[serde(deserialize_with = "positive")]
    pub after: Duration,
}

impl Default for TasksConfig {
    fn default() -> Self {
        let TaskOptions { each, all, memory, ttl, after } = TaskOptions::default();
        Self { each, all, memory, ttl, after }
    }
}

impl TasksConfig {
    /// The options of the protocol.
    pub(crate) fn options(self) -> TaskOptions {
        let Self { each, all, memory, ttl, after } = self;
        TaskOptions { each, all, memory, ttl, after }
    }
}
