//! `[audit]`: the log of loads, calls and denials that nobody can change unnoticed.

use std::path::{Path, PathBuf};
use std::time::Duration;

use bytesize::ByteSize;
use serde::{Deserialize, Deserializer};
use toolbay_audit::{Settings, WhenFull as Full};
use toolbay_model::setting::{count, positive, size};

/// Most files that can be kept.
const MOST: usize = 10_000;

/// The audit log (`[audit]`).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AuditConfig {
    /// Folder of the log. A relative path is relative to the configuration file. `None`, the default, or an empty path:
    /// there is no log.
    pub folder: Option<PathBuf>,
    /// Largest size of one file. 1 MiB to 1 TiB, default 64 MiB.
    #[serde(deserialize_with = "file_size")]
    pub size: ByteSize,
    /// Files that are kept: the oldest is deleted first. 2 to 10,000, default 16.
    #[serde(deserialize_with = "files")]
    pub files: usize,
    /// Files with rejected calls, denials and limits that are kept: these have files of their own. 2 to 10,000, default 4.
    #[serde(deserialize_with = "files")]
    pub rejected_files: usize,
    /// What is recorded of the arguments of a call.
    pub arguments: Arguments,
    /// Time between two signatures in the log, above 0. Default: 1 min.
    #[serde(deserialize_with = "positive")]
    pub checkpoint: Duration,
    /// What happens to calls while the log cannot take their lines.
    pub when_full: WhenFull,
}

/// What happens to calls while the log cannot take their lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WhenFull {
    /// They wait for room, up to their deadline.
    #[default]
    Wait,
    /// They are refused.
    Refuse,
    /// They go on, and their lines are lost.
    Drop,
}

/// What is recorded of the arguments of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Arguments {
    /// Their SHA-256.
    #[default]
    Digest,
    /// That, and their text without the plugin's secrets.
    Full,
}

impl Default for AuditConfig {
    fn default() -> Self {
        Self {
            folder: None,
            size: ByteSize::mib(64),
            files: 16,
            rejected_files: 4,
            arguments: Arguments::default(),
            checkpoint: Duration::from_mins(1),
            when_full: WhenFull::default(),
        }
    }
}

impl AuditConfig {
    /// How the log is written; `None` if there is none.
    pub(crate) fn settings(&self) -> Option<Settings> {
        let folder = self.folder.clone().filter(|folder| !folder.as_os_str().is_empty())?;
        let Self { size, files, rejected_files, checkpoint, .. } = *self;
        let when_full = match self.when_full {
            WhenFull::Wait => Full::Wait,
            WhenFull::Refuse => Full::Refuse,
            WhenFull::Drop => Full::Drop,
        };
        Some(Settings { folder, size: size.as_u64(), files, rejected_files, checkpoint, when_full })
    }

    /// Makes the folder relative to `folder`, which is the one with the configuration file.
    pub(super) fn resolve(&mut self, folder: &Path) {
        if let Some(own) = self.folder.as_mut().filter(|own| !own.as_os_str().is_empty()) {
            *own = folder.join(&*own);
        }
    }
}

fn file_size<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ByteSize, D::Error> {
    size(deserializer, ByteSize::mib(1), ByteSize::tib(1))
}

fn files<'de, D: Deserializer<'de>>(deserializer: D) -> Result<usize, D::Error> {
    // At least 2, so that a new file never takes away all that was written before.
    count(deserializer, 1, MOST).and_then(|files| {
        let few = || serde::de::Error::custom("expected at least 2, not 1");
        if files < 2 { Err(few()) } else { Ok(files) }
    })
}
