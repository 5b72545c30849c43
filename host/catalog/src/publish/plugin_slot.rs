//! The state of one plugin file.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::task::AbortHandle;
use tokio::time::Instant;

use crate::folder::grant_age::GrantAge;
use crate::folder::load_error::LoadError;
use crate::folder::plugin_folder::PluginFiles;
use crate::load::load_result::{FallbackVersion, LoadBaseline, LoadCause, LoadOutcome, LoadResult};
use crate::publish::assemble::PluginState;
use crate::publish::load_log::{
    log_held, log_loaded, log_new_file_warnings, log_plain_files, log_refusal,
};
use crate::publish::scheduled_retry::ScheduledRetry;
use crate::version::plain_files::PlainFiles;
use crate::version::plugin::Plugin;

/// Time for which an incomplete file may stay unchanged before it is reported as a problem.
const INCOMPLETE_TIMEOUT: Duration = Duration::from_secs(2);

/// The state of one plugin file.
#[derive(Default)]
pub(crate) struct PluginSlot {
    /// The files at the start of the last load.
    pub(crate) files: Option<PluginFiles>,
    /// The published state of the plugin.
    pub(crate) state: PluginState,
    /// The load in progress.
    pub(crate) load: Option<ActiveLoad>,
    /// The next retry of a load that failed for a transient reason.
    pub(crate) retry: Option<ScheduledRetry>,
    /// The time at which the files are loaded again because the grant has settled by then.
    pub(crate) settles_at: Option<Instant>,
    /// Tracks how long the grant has been unchanged.
    age: Arc<GrantAge>,
    /// The change of the rules since the last load.
    pub(crate) rules_change: RulesChange,
    /// The time since which the file has been incomplete.
    incomplete_since: Option<Instant>,
    /// True if the file was deleted. The entry stays until the deletion is published, in case the
    /// file comes back at once.
    pub(crate) is_deleted: bool,
    /// True if the first scan found the plugin and its first load has not ended yet.
    pub(crate) is_untried: bool,
}

/// Change of the server's rules for a plugin since its last load. The later values include the
/// earlier ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum RulesChange {
    /// They are the same.
    #[default]
    None,
    /// The configuration, the pin of the plugin or its approval changed.
    Changed,
    /// An approval of the console that was in force at the last load no longer is.
    ApprovalVoid,
}

/// A load in progress.
pub(crate) struct ActiveLoad {
    /// The number of the load.
    pub(crate) ticket: u64,
    /// Aborts the load.
    pub(crate) handle: AbortHandle,
    pub(crate) scope: LoadScope,
}

/// Files that are loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LoadScope {
    /// All files of the plugin.
    Everything,
    /// Only the plain files.
    PlainFiles,
}

impl PluginSlot {
    /// Marks the plugin as deleted, and aborts its load. Returns false if it was deleted already.
    pub(crate) fn delete(&mut self) -> bool {
        if self.is_deleted {
            return false;
        }
        self.is_deleted = true;
        self.retry = None;
        self.settles_at = None;
        self.abort_load();
        true
    }

    /// Records the files that a scan found. Returns what must be loaded, if anything.
    /// `names_only_plain_files` is `None` if no event named a file of the plugin, and `Some(true)`
    /// if events named only plain files.
    pub(crate) fn update_files(
        &mut self,
        id: &str,
        files: PluginFiles,
        names_only_plain_files: Option<bool>,
    ) -> Option<LoadScope> {
        if self.files.as_ref() == Some(&files) && names_only_plain_files.is_none() {
            self.warn_if_still_incomplete(id);
            return None;
        }
        let only_plain = names_only_plain_files.unwrap_or(true)
            && self
                .load
                .as_ref()
                .is_none_or(|load| load.scope == LoadScope::PlainFiles)
            && self.retry.is_none()
            && self.state.held.is_none()
            && self
                .files
                .as_ref()
                .is_some_and(|before| before.is_same_except_plain_files(&files));
        self.files = Some(files);
        if only_plain && self.state.plugin.is_some() {
            return Some(LoadScope::PlainFiles);
        }
        self.retry = None;
        Some(LoadScope::Everything)
    }

    /// Returns the state before a load.
    pub(crate) fn previous_version(&self, cause: LoadCause) -> LoadBaseline {
        LoadBaseline {
            plugin: self.state.plugin.clone(),
            have_rules_changed: self.rules_change != RulesChange::None,
            is_approval_void: self.rules_change == RulesChange::ApprovalVoid,
            cause,
            grant_age: Arc::clone(&self.age),
        }
    }

    pub(crate) fn abort_load(&mut self) {
        if let Some(load) = self.load.take() {
            load.handle.abort();
        }
    }

    /// Returns the time at which the files are loaded without a file change.
    pub(crate) fn next_retry(&self) -> Option<Instant> {
        self.retry
            .map(|retry| retry.at)
            .into_iter()
            .chain(self.settles_at)
            .min()
            .filter(|_| self.load.is_none())
    }

    /// Processes the end of the load with this number, unless a newer load has started. Returns
    /// false if nothing needs to be published.
    pub(crate) fn finish_load(&mut self, id: &str, ticket: u64, result: LoadResult) -> bool {
        let Some(ActiveLoad { scope, .. }) = self.load.take_if(|load| load.ticket == ticket) else {
            return false;
        };
        let is_initial = std::mem::take(&mut self.is_untried);
        self.apply_result(id, scope, result) || is_initial
    }

    /// Records the end of a load. Returns false if nothing needs to be published.
    fn apply_result(&mut self, id: &str, scope: LoadScope, result: LoadResult) -> bool {
        if scope == LoadScope::Everything
            && !matches!(result, LoadResult::Failed(LoadError::Gone, _))
        {
            let stays_void = self.rules_change == RulesChange::ApprovalVoid
                && matches!(result, LoadResult::Pending(..));
            if !stays_void {
                self.rules_change = RulesChange::None;
            }
        }
        match result {
            LoadResult::Loaded(loaded) => match scope {
                LoadScope::Everything => self.put_into_service(id, loaded),
                LoadScope::PlainFiles => self.replace_plain_files(id, loaded.plugin),
            },
            LoadResult::Pending(narrowed, settles) => {
                self.settles_at = Some(settles);
                let changes = narrowed.is_some_and(|narrowed| self.apply_terms(narrowed));
                if changes {
                    tracing::info!(
                        plugin = id,
                        "its files have changed recently, so the new grant applies once they settle; permissions that it removes are denied immediately"
                    );
                }
                changes
            }
            LoadResult::Failed(error, instead) => {
                let changes = self.apply_fallback(id, instead);
                self.record_failure(id, error) || changes
            }
        }
    }

    /// Applies the fallback of files that cannot be loaded. Returns false if it is the version in
    /// service.
    fn apply_fallback(&mut self, id: &str, instead: FallbackVersion) -> bool {
        match instead {
            FallbackVersion::Unchanged => false,
            FallbackVersion::Regranted(narrowed) => {
                let changes = self.apply_terms(narrowed);
                if changes {
                    tracing::info!(
                        plugin = id,
                        "the version in service stays, under the changed grant or settings"
                    );
                }
                changes
            }
            FallbackVersion::Approved(approved) => {
                let changes = self.apply_terms(approved);
                if changes {
                    tracing::info!(plugin = id, "the approved version is put into service");
                }
                changes
            }
            FallbackVersion::NoVersion => {
                self.state.remarks.clear();
                let withdrawn = self.state.plugin.take().is_some();
                if withdrawn {
                    tracing::warn!(
                        plugin = id,
                        "withdrawn: the change cannot be applied to the version in service"
                    );
                }
                withdrawn
            }
        }
    }

    /// Applies other terms to the version in service. Returns false if they are the same.
    fn apply_terms(&mut self, LoadOutcome { plugin, remarks }: LoadOutcome) -> bool {
        if self.behaves_like(&plugin) {
            return false;
        }
        self.state.history.record(&plugin, SystemTime::now());
        (self.state.plugin, self.state.remarks) = (Some(plugin), remarks);
        true
    }

    /// Puts a version with other plain files into service. Returns false if they are the same.
    fn replace_plain_files(&mut self, id: &str, plugin: Arc<Plugin>) -> bool {
        let before = self.files_in_service();
        let files = Arc::clone(&plugin.files);
        self.state.plugin = Some(plugin);
        if before == files {
            return false;
        }
        log_new_file_warnings(id, &files, &before);
        log_plain_files(id, &files);
        true
    }

    /// Puts a version into service. Returns false if it is the same as before.
    fn put_into_service(&mut self, id: &str, loaded: LoadOutcome) -> bool {
        let LoadOutcome { plugin, remarks } = loaded;
        self.incomplete_since = None;
        self.retry = None;
        if self.behaves_like(&plugin) && self.state.problem.is_none() {
            return false;
        }
        for remark in &remarks {
            tracing::warn!(plugin = id, "{remark}");
        }
        log_new_file_warnings(id, &plugin.files, &self.files_in_service());
        log_loaded(id, &plugin);
        let mut history = std::mem::take(&mut self.state.history);
        history.record(&plugin, SystemTime::now());
        self.state = PluginState {
            plugin: Some(plugin),
            problem: None,
            remarks,
            held: None,
            history,
        };
        true
    }

    /// Returns whether the version in service behaves like `plugin`.
    fn behaves_like(&self, plugin: &Plugin) -> bool {
        self.state
            .plugin
            .as_ref()
            .is_some_and(|old| old.behaves_like(plugin))
    }

    fn files_in_service(&self) -> Arc<PlainFiles> {
        self.state
            .plugin
            .as_ref()
            .map(|plugin| Arc::clone(&plugin.files))
            .unwrap_or_default()
    }

    /// Records why the files cannot be loaded. Returns false if nothing needs to be published.
    fn record_failure(&mut self, id: &str, error: LoadError) -> bool {
        let has_previous = self.state.plugin.is_some();
        match error {
            // The next scan finds it deleted or changed.
            LoadError::Gone => return false,
            LoadError::Incomplete(why) => {
                tracing::debug!(
                    plugin = id,
                    "incomplete; probably still being written: {why}"
                );
                self.incomplete_since.get_or_insert_with(Instant::now);
                self.state.problem = Some(why);
            }
            LoadError::Refused(why) => {
                self.incomplete_since = None;
                self.retry = None;
                log_refusal(id, has_previous, &why);
                self.state.problem = Some(why);
            }
            LoadError::Held(held) => {
                self.incomplete_since = None;
                self.retry = None;
                if self.state.held.as_ref() == Some(&held) {
                    return false;
                }
                log_held(id, has_previous, &held.reason);
                self.state.problem = Some(held.reason.clone());
                self.state.held = Some(held);
                return true;
            }
            LoadError::Transient(why) => {
                self.incomplete_since = None;
                let retry = ScheduledRetry::after(self.retry);
                self.retry = Some(retry);
                let why = format!("{why}; the load is retried automatically");
                if self.state.problem.as_ref() == Some(&why) {
                    tracing::debug!(plugin = id, retry_after = ?retry.pause, "still failing: {why}");
                    return false;
                }
                log_refusal(id, has_previous, &why);
                self.state.problem = Some(why);
            }
        }
        self.state.held = None;
        true
    }

    /// Reports a file that stays incomplete. A file that is still being written is not reported.
    fn warn_if_still_incomplete(&mut self, id: &str) {
        if self
            .incomplete_since
            .is_some_and(|since| since.elapsed() >= INCOMPLETE_TIMEOUT)
        {
            self.incomplete_since = None;
            let why = self.state.problem.as_deref().unwrap_or_default();
            log_refusal(id, self.state.plugin.is_some(), why);
        }
    }
}
