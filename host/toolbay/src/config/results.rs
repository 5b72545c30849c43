//! `[results]`: tools' results that are larger than their clients get.

use std::time::Duration;

use bytesize::ByteSize;
use serde::{Deserialize, Deserializer};
use toolbay_model::setting::{positive, size};

/// The least that a client gets of a result, if it gets a part of it: the note and the link must fit.
pub(crate) const LEAST: ByteSize = ByteSize::kib(4);

/// Tools' results that are larger than their clients get, and what is kept of them (`[results]`). Whether there is a link to
/// the whole or an error is said by `limits.oversize`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ResultsConfig {
    /// The most that clients get of a tool's result, at least 4 KiB, where `limits.output` allows more. For clients that cut
    /// off, or refuse, what is longer. `None` (the default): `limits.output` alone.
    #[serde(deserialize_with = "shown")]
    pub shown: Option<ByteSize>,
    /// The largest result that is kept, above 0. Default: 16 MiB.
    #[serde(deserialize_with = "positive")]
    pub size: ByteSize,
    /// Bytes of all results that are kept, above 0; one caller can have half. Default: 64 MiB.
    #[serde(deserialize_with = "positive")]
    pub memory: ByteSize,
    /// For how long a result is kept, above 0. Default: 10 min.
    #[serde(deserialize_with = "positive")]
    pub ttl: Duration,
}

impl Default for ResultsConfig {
    fn default() -> Self {
        Self { shown: None, size: ByteSize::mib(16), memory: ByteSize::mib(64), ttl: Duration::from_mins(10) }
    }
}

fn shown<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<ByteSize>, D::Error> {
    size(deserializer, LEAST, ByteSize::gib(1)).map(Some)
}
