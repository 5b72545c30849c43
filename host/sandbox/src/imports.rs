//! The host functions of the contract, independent of its version: log, progress, cancellation, configuration.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytesize::ByteSize;
use toolbay_model::{Limit, LogLevel, Observer, Progress};
use toolbay_secrets::Secrets;

use crate::environment::Environment;
use crate::tape::Tape;

/// Bytes of a progress message that reach the client; more would not be shown anywhere.
const PROGRESS: usize = 4 << 10;

/// Most changes of resources that a call reports, and the longest URI of one, in bytes.
const UPDATES: usize = 100;
const URI: usize = 2 << 10;

/// What the host functions of one call work with. Clones share it.
#[derive(Clone)]
pub(crate) struct Imports {
    config: Arc<BTreeMap<String, String>>,
    secrets: Arc<Secrets>,
    observer: Arc<dyn Observer>,
    tape: Tape,
    /// Bytes of log messages that the call may forward in all.
    log_limit: ByteSize,
    reported: Arc<Mutex<Reported>>,
}

/// What was reported so far.
struct Reported {
    /// Bytes of log messages that may still be forwarded.
    log_room: usize,
    /// Number of messages that were dropped.
    log_dropped: u64,
    /// The last reported progress. The next one must be greater.
    progress: f64,
    /// Changes of resources that were reported.
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

    /// Logs a message if the call has room for it. A guest that logs in a loop fills its own room and not the
    /// operator's disk.
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

    /// Number of messages that were dropped, because the log had no room left.
    pub(crate) fn log_dropped(&self) -> u64 {
        self.reported().log_dropped
    }

    /// Reports progress. MCP requires it to increase: values that do not, and NaN, are dropped.
    pub(crate) fn progress(&self, progress: f64, total: Option<f64>, message: Option<&str>) {
        let mut reported = self.reported();
        if progress.is_finite() && progress > reported.progress {
            reported.progress = progress;
            let total = total.filter(|total| total.is_finite());
            let message = message.map(|message| cut(&self.secrets.scrub(message), PROGRESS).to_owned());
            self.observer.progress(Progress { progress, total, message });
        }
    }

    /// Reports that a resource changed. The observer knows which ones the plugin can read.
    pub(crate) fn resource_updated(&self, uri: &str) {
        let mut reported = self.reported();
        if reported.updates >= UPDATES || uri.len() > URI {
            return;
        }
        reported.updates += 1;
        // What the observer does with it takes longer than anything else that is done under the lock.
        drop(reported);
        self.observer.resource_updated(uri);
    }

    /// Whether nobody waits for the result any more.
    pub(crate) fn cancelled(&self) -> bool {
        self.tape.cancelled(|| self.observer.cancelled())
    }

    /// The value of a key of `[config]`.
    pub(crate) fn config(&self, key: &str) -> Option<String> {
        self.config.get(key).cloned()
    }

    // Held for a few instructions, and while the observer takes in what is reported; never across an await.
    fn reported(&self) -> MutexGuard<'_, Reported> {
        self.reported.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Every key and value of `[config]`, sorted by key.
    pub(crate) fn config_all(&self) -> Vec<(String, String)> {
        self.config.iter().map(|(key, value)| (key.clone(), value.clone())).collect()
    }
}

/// The beginning of `text`, at most `most` bytes of it.
fn cut(text: &str, most: usize) -> &str {
    text.get(..text.floor_char_boundary(most)).unwrap_or(text)
}
