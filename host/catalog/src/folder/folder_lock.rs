//! The lock file of the plugin folder, as it was last read.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use arc_swap::ArcSwap;
use serde::Deserialize;
use tokio::sync::Notify;
use toolbay_lock::{LOCK_FILE_NAME, LockFile, MAX_LOCK_FILE_BYTES, PluginPin};
use toolbay_model::Digest;
use toolbay_model::text::clean_line;
use toolbay_settings::similar_name::fold_name;

use crate::folder::approval_file::{ApprovalFile, ApprovalFileError, Approvals};
use crate::folder::file_reader::read_optional;
use crate::folder::file_stamp::FileStamp;
use crate::folder::load_error::LoadError;
use crate::folder::source_digests::SourceDigests;

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
    /// The versions that operators approved in the console. Only [`LockMode::Hold`] reads them.
    approvals: Option<ApprovalFile>,
    /// Notified after an approval was stored.
    approved: Notify,
    state: ArcSwap<LockState>,
}

/// State of the lock file and of the approvals.
#[derive(Clone, Debug, Default)]
struct LockState {
    pins: PinState,
    approvals: ApprovalState,
    /// The approvals in force: those whose base is the present pin.
    in_force: Arc<Approvals>,
}

/// State of the lock file.
#[derive(Clone, Debug, Default)]
struct PinState {
    /// The last valid content.
    file: Option<Arc<LockFile>>,
    /// The stamp of the last file that was read, also if it was invalid.
    stamp: Option<FileStamp>,
    /// The reason why the current file is not in force.
    problem: Option<String>,
}

/// State of the file with the approvals.
#[derive(Clone, Debug, Default)]
struct ApprovalState {
    approvals: Approvals,
    /// The stamp of the last file that was read, also if it was invalid.
    stamp: Option<FileStamp>,
    /// The reason why the file cannot be read, as it was logged.
    problem: Option<String>,
}

/// Rules for a load: the lock file, the approvals, and the treatment of differences.
#[derive(Clone, Debug)]
pub(crate) struct LockRules {
    pub(crate) file: Arc<LockFile>,
    /// The approvals in force.
    pub(crate) approvals: Arc<Approvals>,
    /// True if versions that differ are not served.
    pub(crate) holds: bool,
}

/// Change of the lock file or of the approvals.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct LockChange {
    /// The IDs of the plugins whose pins or approvals differ.
    pub(crate) plugins: BTreeSet<String>,
    /// True if every plugin must be compared, because there was no lock file before.
    pub(crate) is_first: bool,
    /// True if the lock file changed, and not only approvals.
    pub(crate) has_new_pins: bool,
    /// The IDs of the plugins of which an approval is no longer in force. Their versions in service
    /// do not stay if their files are held.
    pub(crate) voided: BTreeSet<String>,
}

impl LockRules {
    /// Returns whether the version is the pinned one, or an approved one.
    pub(crate) fn accepts(&self, id: &str, version: &PluginPin) -> bool {
        if self.file.plugins.get(id) == Some(version) {
            return true;
        }
        let approval = self.approvals.get(id);
        approval.is_some_and(|approval| approval.version == LockFile::pin_digest(id, version))
    }

    /// Returns whether this is the grant of the pinned version, or of an approved one.
    pub(crate) fn accepts_grant(&self, id: &str, grant: Option<Digest>) -> bool {
        let pinned = self.file.plugins.get(id);
        let approval = self.approvals.get(id);
        pinned.is_some_and(|pinned| pinned.grant == grant)
            || approval.is_some_and(|approval| approval.grant == grant)
    }

    /// Returns the component and the grant of each version of the plugin that may be served: first
    /// of the approved one, then of the pinned one.
    pub(crate) fn accepted_sources(&self, id: &str) -> Vec<SourceDigests> {
        let approved = self.approvals.get(id).map(|approval| SourceDigests {
            component: approval.component,
            grant: approval.grant,
        });
        let pinned = self.file.plugins.get(id).map(|pinned| SourceDigests {
            component: pinned.component,
            grant: pinned.grant,
        });
        approved.into_iter().chain(pinned).collect()
    }
}

impl FolderLock {
    fn new(mode: LockMode, approvals: Option<ApprovalFile>) -> Self {
        Self {
            mode,
            approvals: approvals.filter(|_| mode == LockMode::Hold),
            approved: Notify::new(),
            state: ArcSwap::default(),
        }
    }

    /// Returns a lock that ignores lock files.
    pub(crate) fn off() -> Self {
        Self::new(LockMode::Off, None)
    }

    /// Reads the lock file of `folder`, if there is one, and the approvals. Blocks.
    ///
    /// # Errors
    ///
    /// The lock file is invalid or cannot be read, or another file was probably meant to be it. The
    /// message begins with the name of the file.
    pub(crate) fn open(
        folder: &Path,
        mode: LockMode,
        approvals: Option<ApprovalFile>,
    ) -> Result<Self, String> {
        let lock = Self::new(mode, approvals);
        if mode == LockMode::Off {
            return Ok(lock);
        }
        lock.refresh(folder);
        let state = lock.state.load();
        if let Some(problem) = &state.pins.problem {
            return Err(problem.clone());
        }
        if state.pins.file.is_none()
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
        let state = self.state.load();
        let file = Arc::clone(state.pins.file.as_ref()?);
        let approvals = Arc::clone(&state.in_force);
        Some(LockRules {
            file,
            approvals,
            holds,
        })
    }

    /// Returns the reason why the current lock file is not in force, if it is not.
    pub(crate) fn problem(&self) -> Option<String> {
        self.state.load().pins.problem.clone()
    }

    /// Returns the file with the approvals, if there can be approvals.
    pub(crate) fn approval_file(&self) -> Option<&ApprovalFile> {
        self.approvals.as_ref()
    }

    /// Reports that an approval was stored.
    pub(crate) fn notify_approval(&self) {
        self.approved.notify_one();
    }

    /// Waits until an approval was stored.
    pub(crate) async fn wait_for_approval(&self) {
        self.approved.notified().await;
    }

    /// Reads the lock file and the approvals again if they changed. Returns the plugins to compare
    /// again. Blocks.
    pub(crate) fn refresh(&self, folder: &Path) -> Option<LockChange> {
        if self.mode == LockMode::Off {
            return None;
        }
        let before = self.state.load_full();
        let pins = refresh_pins(folder, &before.pins);
        let approvals = self
            .approvals
            .as_ref()
            .and_then(|file| refresh_approvals(file, &before.approvals));
        if pins.is_none() && approvals.is_none() {
            return None;
        }
        let pins = pins.unwrap_or_else(|| before.pins.clone());
        let approvals = approvals.unwrap_or_else(|| before.approvals.clone());
        let in_force = select_in_force(&approvals.approvals, pins.file.as_deref());
        let change = compare_files(before.pins.file.as_deref(), pins.file.as_deref());
        let change = with_changed_approvals(change, &before.in_force, &in_force);
        self.state.store(Arc::new(LockState {
            pins,
            approvals,
            in_force: Arc::new(in_force),
        }));
        change
    }
}

/// Reads the lock file if it changed. Returns `None` if it did not. Blocks.
fn refresh_pins(folder: &Path, before: &PinState) -> Option<PinState> {
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
    Some(PinState {
        file,
        stamp,
        problem,
    })
}

/// Reads the approvals if they changed. Returns `None` if they did not. A file that is damaged or
/// that others can change approves nothing. Blocks.
fn refresh_approvals(file: &ApprovalFile, before: &ApprovalState) -> Option<ApprovalState> {
    let stamp = file.stamp();
    if stamp == before.stamp && before.problem.is_none() {
        return None;
    }
    let (approvals, problem) = match file.read() {
        Ok(approvals) => (approvals, None),
        Err(ApprovalFileError::Invalid(why)) => (Approvals::new(), Some(why)),
        Err(ApprovalFileError::Transient(why)) => {
            tracing::debug!("the approvals of the console are read again later: {why}");
            return None;
        }
    };
    if let Some(why) = problem.as_ref().filter(|_| problem != before.problem) {
        tracing::warn!("no version counts as approved in the console: {why}");
    }
    Some(ApprovalState {
        approvals,
        stamp,
        problem,
    })
}

/// Returns the approvals whose base is the present pin.
fn select_in_force(approvals: &Approvals, file: Option<&LockFile>) -> Approvals {
    let Some(file) = file else {
        return Approvals::new();
    };
    let mut in_force = approvals.clone();
    in_force.retain(|id, approval| {
        let pinned = file.plugins.get(id);
        approval.base == pinned.map(|pinned| LockFile::pin_digest(id, pinned))
    });
    in_force
}

/// Adds the plugins whose approvals differ.
fn with_changed_approvals(
    change: Option<LockChange>,
    before: &Approvals,
    after: &Approvals,
) -> Option<LockChange> {
    let ids = before.keys().chain(after.keys());
    let changed: BTreeSet<String> = ids
        .filter(|id| before.get(*id) != after.get(*id))
        .cloned()
        .collect();
    if changed.is_empty() {
        return change;
    }
    let mut change = change.unwrap_or_default();
    let is_void = |id: &&String| !after.contains_key(*id);
    change.voided = changed.iter().filter(is_void).cloned().collect();
    change.plugins.extend(changed);
    Some(change)
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
            has_new_pins: true,
            voided: BTreeSet::new(),
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
        has_new_pins: true,
        voided: BTreeSet::new(),
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
