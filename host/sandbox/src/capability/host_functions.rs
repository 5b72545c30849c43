//! The host functions of the contract, independent of its version: logging, progress, cancellation,
//! configuration.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytesize::ByteSize;
use parking_lot::{Mutex, MutexGuard};
use toolbay_model::{CallObserver, Limit, LogLevel, ProgressUpdate};
use toolbay_secrets::SecretFilter;

use crate::context::call_context::PluginContext;
use crate::context::replay_log::ReplayTape;

/// Maximum size of a progress message, in bytes. No client shows more.
const MAX_PROGRESS_MESSAGE_BYTES: usize = 4 << 10;

/// Maximum number of resource updates that a call reports, and maximum length of their URIs, in
/// bytes.
const MAX_RESOURCE_UPDATES: usize = 100;
const MAX_UPDATED_URI_BYTES: usize = 2 << 10;

/// The state of the host functions of one call. Clones share it.
#[derive(Clone)]
pub(crate) struct HostFunctions {
    config: Arc<BTreeMap<String, String>>,
    secrets: Arc<SecretFilter>,
    observer: Arc<dyn CallObserver>,
    tape: ReplayTape,
    /// Maximum size of all log messages of the call, in bytes.
    log_limit: ByteSize,
    reports: Arc<Mutex<ReportState>>,
}

/// The reports of the call up to now.
struct ReportState {
    /// Remaining budget for log messages, in bytes.
    log_bytes_left: usize,
    /// Number of dropped messages.
    log_dropped: u64,
    /// The last reported progress. The next one must be greater.
    progress: f64,
    /// Number of reported resource updates.
    updates: usize,
}

impl HostFunctions {
    pub(crate) fn new(
        environment: &PluginContext,
        secrets: Arc<SecretFilter>,
        observer: Arc<dyn CallObserver>,
        tape: ReplayTape,
    ) -> Self {
        let PluginContext { limits, config, .. } = environment;
        Self {
            config: Arc::clone(config),
            secrets,
            observer,
            tape,
            log_limit: limits.log,
            reports: Arc::new(Mutex::new(ReportState {
                log_bytes_left: usize::try_from(limits.log.as_u64()).unwrap_or(usize::MAX),
                log_dropped: 0,
                progress: f64::NEG_INFINITY,
                updates: 0,
            })),
        }
    }

    /// Logs a message within the budget of the call. A guest that logs in a loop exhausts its own
    /// budget and not the operator's disk.
    #[expect(
        clippy::unnecessary_wraps,
        reason = "a limit of these calls can end the call without changes to the callers"
    )]
    pub(crate) fn log(&self, level: LogLevel, message: &str) -> Result<(), Limit> {
        let mut reports = self.lock_reports();
        if reports.log_bytes_left == 0 {
            reports.log_dropped += 1;
            return Ok(());
        }
        let message = self.secrets.scrub(message).into_owned();
        let part = truncate(&message, reports.log_bytes_left);
        reports.log_bytes_left = reports.log_bytes_left.saturating_sub(message.len().max(1));
        self.observer.log(level, part);
        if reports.log_bytes_left == 0 {
            self.observer
                .log(LogLevel::Warning, &Limit::Log(self.log_limit).to_string());
        }
        Ok(())
    }

    /// Returns the number of messages that were dropped because the budget was exhausted.
    pub(crate) fn log_dropped(&self) -> u64 {
        self.lock_reports().log_dropped
    }

    /// Reports progress. MCP requires it to increase, so NaN and values that do not increase are
    /// dropped.
    #[expect(
        clippy::unnecessary_wraps,
        reason = "a limit of these calls can end the call without changes to the callers"
    )]
    pub(crate) fn progress(
        &self,
        progress: f64,
        total: Option<f64>,
        message: Option<&str>,
    ) -> Result<(), Limit> {
        let mut reports = self.lock_reports();
        if progress.is_finite() && progress > reports.progress {
            reports.progress = progress;
            let total = total.filter(|total| total.is_finite());
            let message = message.map(|message| {
                truncate(&self.secrets.scrub(message), MAX_PROGRESS_MESSAGE_BYTES).to_owned()
            });
            self.observer.progress(ProgressUpdate {
                progress,
                total,
                message,
            });
        }
        Ok(())
    }

    /// Reports that a resource changed. The observer ignores resources that the plugin does not
    /// offer.
    #[expect(
        clippy::unnecessary_wraps,
        reason = "a limit of these calls can end the call without changes to the callers"
    )]
    pub(crate) fn resource_updated(&self, uri: &str) -> Result<(), Limit> {
        let mut reported = self.lock_reports();
        if reported.updates >= MAX_RESOURCE_UPDATES || uri.len() > MAX_UPDATED_URI_BYTES {
            return Ok(());
        }
        reported.updates += 1;
        // Release the lock first: the observer takes longer than anything that is done under the
        // lock.
        drop(reported);
        self.observer.resource_updated(uri);
        Ok(())
    }

    /// Returns whether the call was cancelled.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.tape.is_cancelled(|| self.observer.is_cancelled())
    }

    /// Returns the value of a key of `[config]`.
    pub(crate) fn config(&self, key: &str) -> Option<String> {
        self.config.get(key).cloned()
    }

    // The lock is held for a few instructions or while the observer handles a report, but never
    // across an await.
    fn lock_reports(&self) -> MutexGuard<'_, ReportState> {
        self.reports.lock()
    }

    /// Returns all keys and values of `[config]`, sorted by key.
    pub(crate) fn config_all(&self) -> Vec<(String, String)> {
        self.config
            .iter()
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect()
    }
}

/// Returns a prefix of `text` of at most `max_bytes` bytes.
fn truncate(text: &str, max_bytes: usize) -> &str {
    text.get(..text.floor_char_boundary(max_bytes))
        .unwrap_or(text)
}
