//! The host functions of the contract, independent of its version: logging, progress, cancellation,
//! configuration.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytesize::ByteSize;
use toolbay_model::{Limit, LogLevel, Observer, Progress};
use toolbay_secrets::Secrets;

use crate::environment::Environment;
use crate::tape::Tape;

/// Maximum size of a progress message, in bytes. No client shows more.
const PROGRESS: usize = 4 << 10;

/// Maximum number of resource updates that a call reports, and maximum length of their URIs, in
/// bytes.
const UPDATES: usize = 100;
const URI: usize = 2 << 10;

/// The state of the host functions of one call. Clones share it.
#[derive(Clone)]
pub(crate) struct Imports {
    config: Arc<BTreeMap<String, String>>,
    secrets: Arc<Secrets>,
    observer: Arc<dyn Observer>,
    tape: Tape,
    /// Maximum size of all log messages of the call, in bytes.
    log_limit: ByteSize,
    reported: Arc<Mutex<Reported>>,
}

/// The reports of the call up to now.
struct Reported {
    /// Remaining budget for log messages, in bytes.
    log_room: usize,
    /// Number of dropped messages.
    log_dropped: u64,
    /// The last reported progress. The next one must be greater.
    progress: f64,
    /// Number of reported resource updates.
    updates: usize,
}

impl Imports {
    pub(crate) fn new(
        environment: &Environment,
        secrets: Arc<Secrets>,
        observer: Arc<dyn Observer>,
        tape: Tape,
    ) -> Self {
        let Environment { limits, config, .. } = environment;
        Self {
            config: Arc::clone(config),
            secrets,
            observer,
            tape,
            log_limit: limits.log,
            reported: Arc::new(Mutex::new(Reported {
                log_room: usize::try_from(limits.log.as_u64()).unwrap_or(usize::MAX),
                log_dropped: 0,
                progress: f64::NEG_INFINITY,
                updates: 0,
            })),
        }
    }

    /// Logs a message within the budget of the call. A guest that logs in a loop exhausts its own
    /// budget and not the operator's disk.
    pub(crate) fn log(&self, level: LogLevel, message: &str) {
        let mut reported = self.reported();
        if reported.log_room == 0 {
            reported.log_dropped += 1;
            return;
        }
        let message = self.secrets.scrub(message).into_owned();
        let part = cut(&message, reported.log_room);
        reported.log_room = reported.log_room.saturating_sub(message.len().max(1));
        self.observer.log(level, part);
        if reported.log_room == 0 {
            self.observer.log(LogLevel::Warning, &Limit::Log(self.log_limit).to_string());
        }
    }

    /// Returns the number of messages that were dropped because the budget was exhausted.
    pub(crate) fn log_dropped(&self) -> u64 {
        self.reported().log_dropped
    }

    /// Reports progress. MCP requires it to increase, so NaN and values that do not increase are
    /// dropped.
    pub(crate) fn progress(&self, progress: f64, total: Option<f64>, message: Option<&str>) {
        let mut reported = self.reported();
        if progress.is_finite() && progress > reported.progress {
            reported.progress = progress;
            let total = total.filter(|total| total.is_finite());
            let message = message.map(|message| cut(&self.secrets.scrub(message), PROGRESS).to_owned());
            self.observer.progress(Progress { progress, total, message });
        }
    }

    /// Reports that a resource changed. The observer filters the ones that the plugin can read.
    pub(crate) fn resource_updated(&self, uri: &str) {
        let mut reported = self.reported();
        if reported.updates >= UPDATES || uri.len() > URI {
            return;
        }
        reported.updates += 1;
        // Release the lock first: the observer takes longer than anything that is done under the
        // lock.
        drop(reported);
        self.observer.resource_updated(uri);
    }

    /// Returns whether the call was cancelled.
    pub(crate) fn cancelled(&self) -> bool {
        self.tape.cancelled(|| self.observer.cancelled())
    }

    /// Returns the value of a key of `[config]`.
    pub(crate) fn config(&self, key: &str) -> Option<String> {
        self.config.get(key).cloned()
    }

    // The lock is held for a few instructions or while the observer handles a report, but never
    // across an await.
    fn reported(&self) -> MutexGuard<'_, Reported> {
        self.reported.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns all keys and values of `[config]`, sorted by key.
    pub(crate) fn config_all(&self) -> Vec<(String, String)> {
        self.config.iter().map(|(key, value)| (key.clone(), value.clone())).collect()
    }
}

/// Returns a prefix of `text` of at most `most` bytes.
fn cut(text: &str, most: usize) -> &str {
    text.get(..text.floor_char_boundary(most)).unwrap_or(text)
}
