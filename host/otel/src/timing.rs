//! How long what is sent waits for others, for another try, and at the end.

use std::time::Duration;

/// How long things wait.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ExportTiming {
    /// How long an item waits for others.
    pub(crate) delay: Duration,
    /// The first wait after a failure.
    pub(crate) first: Duration,
    /// The longest one.
    pub(crate) longest: Duration,
    /// For how long the same request is sent again.
    pub(crate) patience: Duration,
    /// How long the end of the server waits for what is left to be sent.
    pub(crate) end: Duration,
}

impl Default for ExportTiming {
    fn default() -> Self {
        Self {
            delay: Duration::from_secs(1),
            first: Duration::from_secs(1),
            longest: Duration::from_secs(30),
            patience: Duration::from_mins(5),
            end: Duration::from_secs(2),
        }
    }
}
