//! `[audit]`: the tamper-evident log of loads, calls and denials.

use std::path::{Path, PathBuf};
use std::time::Duration;

use bytesize::ByteSize;
use serde::{Deserialize, Deserializer};
use toolbay_audit::{AuditSettings, WhenFull as Full};
use toolbay_model::setting::{count, positive, size};

/// Maximum number of retained files.
const MAX_FILES: usize = 10_000;

/// The audit log (`[audit]`).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AuditConfig {
    /// Directory of the log. A relative path is relative to the configuration file. `None`, the
    /// default, or an empty path: there is no log.
    pub folder: Option<PathBuf>,
    /// Maximum size of one file. 1 MiB to 1 TiB, default 64 MiB.
    #[serde(deserialize_with = "file_size")]
    pub file_size: ByteSize,
    /// Maximum number of retained files. The oldest is deleted first. 2 to 10,000, default 16.
    #[serde(deserialize_with = "files")]
    pub files: usize,
    /// Maximum number of retained files with rejected calls, denials and exceeded limits, which
    /// have separate files. 2 to 10,000, default 4.
    #[serde(deserialize_with = "files")]
    pub rejected_files: usize,
    /// The form in which the arguments of a call are recorded.
    pub arguments: Arguments,
    /// Time between two signatures in the log, above 0. Default: 1 min.
    #[serde(deserialize_with = "positive")]
    pub checkpoint: Duration,
    /// The handling of calls while the log cannot accept their lines.
    pub when_full: WhenFull,
}

/// The handling of calls while the log cannot accept their lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WhenFull {
    /// Calls wait until the log accepts lines again, up to their deadline.
    #[default]
    Wait,
    /// Calls are refused.
    Refuse,
    /// Calls continue, and their lines are lost.
    Drop,
}

/// The form in which the arguments of a call are recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Arguments {
    /// The SHA-256 of the arguments.
    #[default]
    Digest,
    /// The SHA-256, and the text of the arguments without the plugin's secrets.
    Full,
}

impl Default for AuditConfig {
    fn default() -> Self {
        Self {
            folder: None,
            file_size: ByteSize::mib(64),
            files: 16,
            rejected_files: 4,
            arguments: Arguments::default(),
            checkpoint: Duration::from_mins(1),
            when_full: WhenFull::default(),
        }
    }
}

impl AuditConfig {
    /// Returns the settings of the log. `None` if there is no log.
    pub(crate) fn settings(&self) -> Option<AuditSettings> {
        let folder = self
            .folder
            .clone()
            .filter(|folder| !folder.as_os_str().is_empty())?;
        let Self {
            file_size,
            files,
            rejected_files,
            checkpoint,
            ..
        } = *self;
        let when_full = match self.when_full {
            WhenFull::Wait => Full::Wait,
            WhenFull::Refuse => Full::Refuse,
            WhenFull::Drop => Full::Drop,
        };
        Some(AuditSettings {
            folder,
            max_file_bytes: file_size.as_u64(),
            files,
            rejected_files,
            checkpoint_interval: checkpoint,
            when_full,
        })
    }

    /// Resolves a relative path against `folder`, the directory of the configuration file.
    pub(super) fn resolve(&mut self, folder: &Path) {
        if let Some(path) = self
            .folder
            .as_mut()
            .filter(|own| !own.as_os_str().is_empty())
        {
            *path = folder.join(&*path);
        }
    }
}

fn file_size<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ByteSize, D::Error> {
    size(deserializer, ByteSize::mib(1), ByteSize::tib(1))
}

fn files<'de, D: Deserializer<'de>>(deserializer: D) -> Result<usize, D::Error> {
    // At least 2, so that a new file never replaces the whole log.
    count(deserializer, 1, MAX_FILES).and_then(|files| {
        let too_few = || serde::de::Error::custom("expected at least 2, not 1");
        if files < 2 { Err(too_few()) } else { Ok(files) }
    })
}
