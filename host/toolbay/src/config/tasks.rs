//! `[tasks]`: calls that continue after their request has ended.

use std::time::Duration;

use bytesize::ByteSize;
use serde::Deserialize;
use toolbay_mcp::TaskOptions;
use toolbay_model::setting::positive;

use super::bounds::many;

/// Calls that continue after their request has ended, and their retention (`[tasks]`). Plugins or
/// grants decide which tools can be called as tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TasksConfig {
    /// Maximum number of retained tasks of one caller, 1 to 1,000,000. Default: 1,000.
    #[serde(deserialize_with = "many")]
    pub per_caller: usize,
    /// Maximum number of retained tasks of all callers, 1 to 1,000,000. Default: 4,000.
    #[serde(deserialize_with = "many")]
    pub total: usize,
    /// Total size of all tasks, mostly of their results, in bytes, above 0. One caller can use a
    /// quarter. Default: 64 MiB.
    #[serde(deserialize_with = "positive")]
    pub memory: ByteSize,
    /// Time for which a task is retained after it was created, above 0. Clients can request less.
    /// Default: 1 h.
    #[serde(deserialize_with = "positive")]
    pub ttl: Duration,
    /// Time that a call runs before it becomes a task, where the server decides that (2026-07-28).
    /// Default: 500 ms.
    #[serde(deserialize_with = "positive")]
    pub after: Duration,
}

impl Default for TasksConfig {
    fn default() -> Self {
        let TaskOptions {
            per_caller,
            total,
            memory,
            ttl,
            promotion_delay: after,
        } = TaskOptions::default();
        Self {
            per_caller,
            total,
            memory,
            ttl,
            after,
        }
    }
}

impl TasksConfig {
    /// Returns the protocol options for tasks.
    pub(crate) fn options(self) -> TaskOptions {
        let Self {
            per_caller,
            total,
            memory,
            ttl,
            after,
        } = self;
        TaskOptions {
            per_caller,
            total,
            memory,
            ttl,
            promotion_delay: after,
        }
    }
}
