//! `[describe]`: limits for listing what a plugin offers at load.

use std::time::Duration;

use bytesize::ByteSize;
use serde::Deserialize;
use toolbay_model::setting::positive;

/// Limits for listing what a plugin offers at load (`[describe]`).
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
    /// Prompts per plugin, and files per directory `<id>.prompts`, at least 1. Default: 1,024.
    #[serde(deserialize_with = "positive")]
    pub prompts: usize,
    /// Resources and resource templates per plugin, and files per directory `<id>.resources`, at
    /// least 1. Default: 4,096.
    #[serde(deserialize_with = "positive")]
    pub resources: usize,
    /// Total size of a plugin's schemas, in bytes. Default: 1 MiB.
    #[serde(deserialize_with = "positive")]
    pub schemas: ByteSize,
    /// Total size of a plugin's descriptions of its tools, prompts and resources, in bytes: names,
    /// titles, descriptions, schemas, icons and `_meta`. It also limits what is retained of the
    /// files in each of its directories. Default: 4 MiB.
    #[serde(deserialize_with = "positive")]
    pub size: ByteSize,
    /// Total size of the skill files of all plugins, which are held in memory, in bytes. Default:
    /// 256 MiB.
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
