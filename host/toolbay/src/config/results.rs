//! `[results]`: tool results that are too large for their clients.

use std::time::Duration;

use bytesize::ByteSize;
use serde::{Deserialize, Deserializer};
use toolbay_model::setting::{positive, size};

/// Minimum size of a truncated result, in which the note and the link must fit.
pub(crate) const MIN_SHOWN_RESULT: ByteSize = ByteSize::kib(4);

/// Tool results that are too large for their clients, and their retention (`[results]`).
/// `limits.oversize` decides between a link to the whole result and an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ResultsConfig {
    /// Maximum size of a tool result in a response, at least 4 KiB, where `limits.output` allows
    /// more. For clients that truncate or reject larger results. `None` (the default): only
    /// `limits.output` applies.
    #[serde(deserialize_with = "shown")]
    pub shown: Option<ByteSize>,
    /// Maximum size of a retained result, above 0. Default: 16 MiB.
    #[serde(deserialize_with = "positive")]
    pub size: ByteSize,
    /// Total size of all retained results, above 0. One caller can use half. Default: 64 MiB.
    #[serde(deserialize_with = "positive")]
    pub memory: ByteSize,
    /// Time for which a result is retained, above 0. Default: 10 min.
    #[serde(deserialize_with = "positive")]
    pub ttl: Duration,
}

impl Default for ResultsConfig {
    fn default() -> Self {
        Self {
            shown: None,
            size: ByteSize::mib(16),
            memory: ByteSize::mib(64),
            ttl: Duration::from_mins(10),
        }
    }
}

fn shown<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<ByteSize>, D::Error> {
    size(deserializer, MIN_SHOWN_RESULT, ByteSize::gib(1)).map(Some)
}
