//! `[describe]`: limits of listing what a plugin offers at load.

use std::time::Duration;

use bytesize::ByteSize;
use serde::Deserialize;
use toolbay_model::setting::positive;

/// Limits of listing what a plugin offers at load (`[describe]`).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Describe {
    /// wasmtime fuel, above 0. Default: 1,000,000,000.
    #[serde(deserialize_with = "positive")]
    pub fuel: u64,
    /// Wall-clock time, above 0. Default: 5 s.
    #[serde(deserialize_with = "positive")]
    pub timeout: Duration,
    /// Tools per plugin, at least 1. Default: 4,096.
    #[serde(deserialize_with = "positive")]
    pub tools: usize,
    /// Prompts per plugin, and files per folder `<id>.prompts`, at least 1. Default: 1,024.
    #[serde(deserialize_with = "positive")]
    pub prompts: usize,
    /// Resources and resource templates per plugin, and files per folder `<id>.resources`, at least 1. Default: 4,096.
    #[serde(deserialize_with = "positive")]
    pub resources: usize,
    /// Bytes of all schemas of a plugin together. Default: 1 MiB.
    #[serde(deserialize_with = "positive")]
    pub schemas: ByteSize,
    /// Bytes of everything that a plugin says of its tools, prompts and resources: names, titles, descriptions, schemas,
    /// icons and `_meta`; and of what is kept of the files in each of its folders. Default: 4 MiB.
    #[serde(deserialize_with = "positive")]
    pub size: ByteSize,
    /// Bytes of the files of all skills of all plugins together, which are kept in memory. Default: 256 MiB.
    #[serde(deserialize_with = "positive")]
    pub skills: ByteSize,
}

impl Default for Describe {
    fn default() -> Self {
        Self {
            fuel: 1_000_000_000,
            timeout: Duration::from_secs(5),
            tools: 4096,
            prompts: 1024,
            resources: 4096,
            schemas: ByteSize::mib(1),
            size: ByteSize::mib(4),
            skills: ByteSize::mib(256),
        }
    }
}
