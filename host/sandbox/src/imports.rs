//! The host functions of the contract, independent of its version: log, progress, cancellation, configuration.

use toolbay_model::{Limit, LogLevel, Progress};

use crate::state::State;

/// Bytes of a progress message that reach the client; more would not be shown anywhere.
const PROGRESS: usize = 4 << 10;

impl State {
    /// Logs a message if the call has room for it. A guest that logs in a loop fills its own room and not the
    /// operator's disk.
    pub(crate) fn guest_log(&mut self, level: LogLevel, message: &str) {
        if self.log_room == 0 {
            self.log_dropped += 1;
            return;
        }
        let message = self.secrets.scrub(message).into_owned();
        let part = cut(&message, self.log_room);
        self.log_room = self.log_room.saturating_sub(message.len().max(1));
        self.observer.log(level, part);
        if self.log_room == 0 {
            self.observer.log(LogLevel::Warning, &Limit::Log(self.log_limit).message(None));
        }
    }

    /// Reports progress. MCP requires it to increase: values that do not, and NaN, are dropped.
    pub(crate) fn guest_progress(&mut self, progress: f64, total: Option<f64>, message: Option<&str>) {
        if progress.is_finite() && progress > self.progress {
            self.progress = progress;
            let total = total.filter(|total| total.is_finite());
            let message = message.map(|message| cut(&self.secrets.scrub(message), PROGRESS).to_owned());
            self.observer.progress(Progress { progress, total, message });
        }
    }

    /// Whether nobody waits for the result any more.
    pub(crate) fn guest_cancelled(&self) -> bool {
        self.observer.cancelled()
    }

    /// The value of a key of `[config]`.
    pub(crate) fn guest_config(&self, key: &str) -> Option<String> {
        self.config.get(key).cloned()
    }

    /// Every key and value of `[config]`, sorted by key.
    pub(crate) fn guest_config_all(&self) -> Vec<(String, String)> {
        self.config.iter().map(|(key, value)| (key.clone(), value.clone())).collect()
    }
}

/// The beginning of `text`, at most `most` bytes of it.
fn cut(text: &str, most: usize) -> &str {
    text.get(..text.floor_char_boundary(most)).unwrap_or(text)
}
