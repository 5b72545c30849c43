//! `[describe]`: what a plugin may use to list its tools.

use std::time::Duration;

use bytesize::ByteSize;
use serde::Deserialize;
use toolbay_model::setting::positive;

/// What a plugin may use to list its tools.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Describe {
    /// Instructions, about.
    #[serde(deserialize_with = "positive")]
    pub fuel: u64,
    /// Wall clock.
    #[serde(deserialize_with = "positive")]
    pub timeout: Duration,
    /// Tools in one plugin.
    #[serde(deserialize_with = "positive")]
    pub tools: usize,
    /// Bytes of all its schemas together.
    #[serde(deserialize_with = "positive")]
    pub schemas: ByteSize,
}

impl Default for Describe {
    fn default() -> Self {
        Self { fuel: 1_000_000_000, timeout: Duration::from_secs(5), tools: 4096, schemas: ByteSize::mib(1) }
    }
}
