//! The lock file of the plugin folder, as it was last read.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use arc_swap::ArcSwap;
use serde::Deserialize;
use toolbay_lock::{LOCK_FILE_NAME, LockFile, MAX_LOCK_FILE_BYTES};
use toolbay_model::text::clean_line;
use toolbay_settings::similar_name::fold_name;

use crate::folder::file_reader::read_optional;
use crate::folder::file_stamp::FileStamp;
use crate::folder::load_error::LoadError;

/// Maximum length of a file name in a message, in bytes.
const MAX_SHOWN_NAME_BYTES: usize = 200;

/// Maximum number of entries of the plugin folder that are searched for a misnamed lock file.
const MAX_SEARCHED_ENTRIES: usize = 100_000;

/// Treatment of plugins that differ from the lock file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LockMode {
    /// The lock file is ignored.
    Off,
    /// Differences are logged, and the plugins are served.
    Warn,
    /// The approved version stays in service until the lock file has the new one.
    #[default]
    Hold,
}

/// The lock of a plugin folder. Without a lock file, no plugin is checked. A lock file that was read
/// stays in force if it is later deleted or damaged.
#[derive(Debug)]
pub(crate) struct FolderLock {
    mode: LockMode,
    state: ArcSwap<LockState>,
}

/// State of the lock file.
#[derive(Debug, Default)]
struct LockState {
    /// The last valid content.
    file: Option<Arc<LockFile>>,
    /// The stamp of the last file that was read, also if it was invalid.
    stamp: Option<FileStamp>,
    /// The reason why the current file is not in force.
    problem: Option<String>,
}

/// Rules for a load: the lock file and the treatment of differences.
#[derive(Clone, Debug)]
pub(crate) struct LockRules {
    pub(crate) file: Arc<LockFile>,
    /// True if versions that differ are not served.
    pub(crate) holds: bool,
}

/// Change of the lock file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct LockChange {
    /// The IDs of the plugins whose pins differ.
    pub(crate) plugins: BTreeSet<String>,
    /// True if every plugin must be compared, because there was no lock file before.
    pub(crate) is_first: bool,
}

impl FolderLock {
    /// Returns a lock that ignores lock files.
    pub(crate) fn off() -> Self {
        Self {
            mode: LockMode::Off,
            state: ArcSwap::default(),
        }
    }

    /// Reads the lock file of `folder`, if there is one. Blocks.
    ///
    /// # Errors
    ///
    /// The file is invalid or cannot be read, or another file was probably meant to be the lock
    /// file. The message begins with the name of the file.
    pub(crate) fn open(folder: &Path, mode: LockMode) -> Result<Self, String> {
        let lock = Self {
            mode,
            state: ArcSwap::default(),
        };
        if mode == LockMode::Off {
            return Ok(lock);
        }
        lock.refresh(folder);
        let state = lock.state.load();
        if let Some(problem) = &state.problem {
            return Err(problem.clone());
        }
        if state.file.is_none()
            && let Some(name) = find_misnamed_file(folder)
        {
            return Err(format!(
                "{name} looks like the lock file, whose name must be {LOCK_FILE_NAME}: rename {name} or delete it"
            ));
        }
        drop(state);
        Ok(lock)
    }

    /// Returns the rules in force; `None` if no plugin is checked.
    pub(crate) fn rules(&self) -> Option<LockRules> {
        let holds = match self.mode {
            LockMode::Off => return None,
            LockMode::Warn => false,
            LockMode::Hold => true,
        };
        let file = Arc::clone(self.state.load().file.as_ref()?);
        Some(LockRules { file, holds })
    }

    /// Returns the reason why the current lock file is not in force, if it is not.
    pub(crate) fn problem(&self) -> Option<String> {
        self.state.load().problem.clone()
    }

    /// Reads the lock file again if it changed. Returns the plugins to compare again. Blocks.
    pub(crate) fn refresh(&self, folder: &Path) -> Option<LockChange> {
        if self.mode == LockMode::Off {
            return None;
        }
        let before = self.state.load_full();
        let metadata = std::fs::metadata(folder.join(LOCK_FILE_NAME));
        let stamp = metadata
            .ok()
            .map(|metadata| FileStamp::from_metadata(&metadata));
        if stamp.is_some() && stamp == before.stamp {
            return None;
        }
        let text = read_text(folder);
        // A file that could not be read now, for example for lack of descriptors, is read again.
        let stamp = stamp.filter(|_| text.is_ok());
        let read = match text.and_then(parse_text) {
            Ok(None) if before.file.is_some() => Err(format!("{LOCK_FILE_NAME}: it was deleted")),
            Ok(None) => return None,
            read => read,
        };
        let (file, problem) = match read {
            Ok(file) => (file.map(Arc::new), None),
            Err(why) => (before.file.clone(), Some(why)),
        };
        let change = compare_files(before.file.as_deref(), file.as_deref());
        self.state.store(Arc::new(LockState {
            file,
            stamp,
            problem,
        }));
        change
    }
}

/// Reads the lock file of a plugin folder; `None` if there is none. Blocks.
///
/// # Errors
///
/// The file is invalid or cannot be read. The message begins with its name.
pub fn read_lock_file(folder: &Path) -> Result<Option<LockFile>, String> {
    read_text(folder).and_then(parse_text)
}

/// Returns the text of the lock file, if the file exists.
fn read_text(folder: &Path) -> Result<Option<String>, String> {
    match read_optional(&folder.join(LOCK_FILE_NAME), MAX_LOCK_FILE_BYTES) {
        Err(LoadError::Gone) => Ok(None),
        read => read.map_err(|error| error.reason().to_owned()),
    }
}

fn parse_text(text: Option<String>) -> Result<Option<LockFile>, String> {
    text.map(|text| LockFile::parse(&text))
        .transpose()
        .map_err(|why| format!("{LOCK_FILE_NAME}: {why}"))
}

/// Returns the plugins whose pins differ; `None` if there are none.
fn compare_files(before: Option<&LockFile>, after: Option<&LockFile>) -> Option<LockChange> {
    let after = after?;
    let Some(before) = before else {
        return Some(LockChange {
            plugins: BTreeSet::new(),
            is_first: true,
        });
    };
    let ids = before.plugins.keys().chain(after.plugins.keys());
    let plugins: BTreeSet<String> = ids
        .filter(|id| before.plugins.get(*id) != after.plugins.get(*id))
        .cloned()
        .collect();
    (!plugins.is_empty()).then_some(LockChange {
        plugins,
        is_first: false,
    })
}

/// Returns the name of a file that was probably meant to be the lock file.
fn find_misnamed_file(folder: &Path) -> Option<String> {
    let entries = std::fs::read_dir(folder).ok()?;
    let names = entries
        .take(MAX_SEARCHED_ENTRIES)
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut similar = names.filter(|name| {
        let meant = fold_name(name);
        [LOCK_FILE_NAME, "toolbay.lock.toml", "toolbay-lock.toml"]
            .contains(&meant.strip_suffix(".txt").unwrap_or(&meant))
    });
    similar
        .next()
        .map(|name| clean_line(&name, MAX_SHOWN_NAME_BYTES))
}

#[cfg(test)]
mod tests;
