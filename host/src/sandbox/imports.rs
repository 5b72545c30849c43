//! The host's side of `toolbay:plugin/host`: log, progress, cancellation, configuration.

use super::bindings::toolbay::plugin::host::{Host, Level};
use super::bindings::toolbay::plugin::types;
use super::call::{LogLevel, Progress};
use super::state::State;
use crate::text::clean;

impl types::Host for State {}

impl State {
    /// What a guest says, without what only acts and without secrets.
    fn said(&self, message: &str) -> String {
        self.secrets.redact(&clean(message)).into_owned()
    }
}

impl Host for State {
    fn log(&mut self, level: Level, message: String) -> wasmtime::Result<()> {
        // A guest that logs in a loop fills its own room, not the operator's disk.
        if self.log_room == 0 {
            return Ok(());
        }
        self.log_room = self.log_room.saturating_sub(message.len().max(1));
        self.observer.log(log_level(level), &self.said(&message));
        if self.log_room == 0 {
            self.observer
                .log(LogLevel::Warning, "log limit reached; later lines of this call are dropped (limits.log)");
        }
        Ok(())
    }

    fn progress(&mut self, progress: f64, total: Option<f64>, message: Option<String>) -> wasmtime::Result<()> {
        // MCP: progress must increase. NaN compares false and is dropped with the rest.
        if progress.is_finite() && progress > self.progress {
            self.progress = progress;
            let total = total.filter(|total| total.is_finite());
            let message = message.map(|message| self.said(&message));
            self.observer.progress(Progress { progress, total, message });
        }
        Ok(())
    }

    fn cancelled(&mut self) -> wasmtime::Result<bool> {
        Ok(self.observer.cancelled())
    }

    fn config(&mut self, key: String) -> wasmtime::Result<Option<String>> {
        Ok(self.config.get(&key).cloned())
    }

    fn config_all(&mut self) -> wasmtime::Result<Vec<(String, String)>> {
        Ok(self.config.iter().map(|(key, value)| (key.clone(), value.clone())).collect())
    }
}

fn log_level(level: Level) -> LogLevel {
    match level {
        Level::Debug => LogLevel::Debug,
        Level::Info => LogLevel::Info,
        Level::Notice => LogLevel::Notice,
        Level::Warning => LogLevel::Warning,
        Level::Error => LogLevel::Error,
        Level::Critical => LogLevel::Critical,
        Level::Alert => LogLevel::Alert,
        Level::Emergency => LogLevel::Emergency,
    }
}
