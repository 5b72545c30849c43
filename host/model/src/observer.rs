//! What a guest reports while it runs, and who hears it.

use serde::{Deserialize, Serialize};

/// Receives a guest's log messages and progress while it runs.
///
/// Its methods run on the guest's thread: an implementation must not block.
pub trait Observer: Send + Sync {
    /// The guest logs a message. It is clean: no control characters, no secrets.
    fn log(&self, level: LogLevel, message: &str);
    /// The guest reports progress; `progress.progress` is greater than in the report before.
    fn progress(&self, progress: Progress);
    /// Whether nobody waits for the answer any more.
    fn cancelled(&self) -> bool;
}

/// An observer that ignores everything and never cancels.
#[derive(Clone, Copy, Debug, Default)]
pub struct Quiet;

impl Observer for Quiet {
    fn log(&self, _level: LogLevel, _message: &str) {}

    fn progress(&self, _progress: Progress) {}

    fn cancelled(&self) -> bool {
        false
    }
}

/// The progress of a call (MCP `notifications/progress`).
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    /// The work done, in a unit of the guest's choice; finite.
    pub progress: f64,
    /// All work there is, in the same unit, if known; finite.
    pub total: Option<f64>,
    /// A message for people.
    pub message: Option<String>,
}

/// The severity of a log message (RFC 5424, as in MCP), least severe first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    /// Debugging information.
    Debug,
    /// Normal operation.
    #[default]
    Info,
    /// Normal but significant.
    Notice,
    /// A possible problem.
    Warning,
    /// An error.
    Error,
    /// A critical condition.
    Critical,
    /// Action must be taken at once.
    Alert,
    /// The tool is unusable.
    Emergency,
}
