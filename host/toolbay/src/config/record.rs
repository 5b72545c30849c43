//! `[record]`: the file in which calls are kept, so that they can be run again.

use std::path::{Path, PathBuf};

use bytesize::ByteSize;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use toolbay_mcp::Pattern;
use toolbay_model::setting::size;
use toolbay_recording::Settings;

/// The recording of calls (`[record]`).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RecordConfig {
    /// The file. A relative path is relative to the configuration file. `None`, the default, or an empty path: calls are
    /// not recorded.
    pub file: Option<PathBuf>,
    /// Largest size of the file. What comes later is not recorded. 1 MiB to 1 TiB, default 1 GiB.
    #[serde(deserialize_with = "file_size")]
    pub max_size: ByteSize,
    /// The most bytes that are recorded of one call. 1 KiB to 16 MiB, default 1 MiB.
    #[serde(deserialize_with = "call_size")]
    pub max_call: ByteSize,
    /// The tools whose calls are recorded, by their names or patterns. `None`: all.
    #[serde(deserialize_with = "tools")]
    pub tools: Option<Vec<Pattern>>,
}

impl Default for RecordConfig {
    fn default() -> Self {
        Self { file: None, max_size: ByteSize::gib(1), max_call: ByteSize::mib(1), tools: None }
    }
}

impl RecordConfig {
    /// How the recording is written; `None` if there is none.
    pub(crate) fn settings(&self) -> Option<Settings> {
        let file = self.file.clone().filter(|file| !file.as_os_str().is_empty())?;
        let max_call = usize::try_from(self.max_call.as_u64()).unwrap_or(usize::MAX);
        Some(Settings { file, max_size: self.max_size.as_u64(), max_call })
    }

    /// Makes the file relative to `folder`, which is the one with the configuration file.
    pub(super) fn resolve(&mut self, folder: &Path) {
        if let Some(own) = self.file.as_mut().filter(|own| !own.as_os_str().is_empty()) {
            *own = folder.join(&*own);
        }
    }
}

fn tools<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<Pattern>>, D::Error> {
    let patterns = super::http::list(deserializer)?;
    patterns.into_iter().map(Pattern::try_from).collect::<Result<_, _>>().map(Some).map_err(D::Error::custom)
}

fn file_size<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ByteSize, D::Error> {
    size(deserializer, ByteSize::mib(1), ByteSize::tib(1))
}

fn call_size<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ByteSize, D::Error> {
    size(deserializer, ByteSize::kib(1), ByteSize::mib(16))
}
