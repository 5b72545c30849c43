//! `[record]`: the file in which calls are recorded, for replay.

use std::path::{Path, PathBuf};

use bytesize::ByteSize;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use toolbay_mcp::NamePattern;
use toolbay_model::setting::size;
use toolbay_recording::RecordingSettings;

/// The recording of calls (`[record]`).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RecordConfig {
    /// The file. A relative path is relative to the configuration file. `None`, the default, or an
    /// empty path: calls are not recorded.
    pub file: Option<PathBuf>,
    /// Maximum size of the file. Later calls are not recorded. 1 MiB to 1 TiB, default 1 GiB.
    #[serde(deserialize_with = "file_size")]
    pub size: ByteSize,
    /// Maximum recorded size of one call, in bytes. 1 KiB to 16 MiB, default 1 MiB.
    #[serde(deserialize_with = "call_size")]
    pub call_size: ByteSize,
    /// The names or patterns of the tools whose calls are recorded. `None`: all.
    #[serde(deserialize_with = "tools")]
    pub tools: Option<Vec<NamePattern>>,
}

impl Default for RecordConfig {
    fn default() -> Self {
        Self {
            file: None,
            size: ByteSize::gib(1),
            call_size: ByteSize::mib(1),
            tools: None,
        }
    }
}

impl RecordConfig {
    /// Returns the settings of the recording. `None` if calls are not recorded.
    pub(crate) fn settings(&self) -> Option<RecordingSettings> {
        let file = self
            .file
            .clone()
            .filter(|file| !file.as_os_str().is_empty())?;
        let call_size = usize::try_from(self.call_size.as_u64()).unwrap_or(usize::MAX);
        Some(RecordingSettings {
            file,
            size: self.size.as_u64(),
            call_size,
        })
    }

    /// Resolves a relative path against `folder`, the directory of the configuration file.
    pub(super) fn resolve(&mut self, folder: &Path) {
        if let Some(path) = self.file.as_mut().filter(|own| !own.as_os_str().is_empty()) {
            *path = folder.join(&*path);
        }
    }
}

fn tools<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<NamePattern>>, D::Error> {
    let patterns = super::text_list::parse_list(deserializer)?;
    patterns
        .into_iter()
        .map(NamePattern::try_from)
        .collect::<Result<_, _>>()
        .map(Some)
        .map_err(D::Error::custom)
}

fn file_size<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ByteSize, D::Error> {
    size(deserializer, ByteSize::mib(1), ByteSize::tib(1))
}

fn call_size<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ByteSize, D::Error> {
    size(deserializer, ByteSize::kib(1), ByteSize::mib(16))
}
