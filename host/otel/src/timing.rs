//! Delays and timeouts of the exporter.

use std::time::Duration;

/// Delays and timeouts of the exporter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ExportTiming {
    /// Time that an item waits for further items of the same request.
    pub(crate) delay: Duration,
    /// Initial retry delay.
    pub(crate) first: Duration,
    /// Maximum retry delay.
    pub(crate) longest: Duration,
    /// Time after which a request is no longer retried.
    pub(crate) patience: Duration,
    /// Time limit for sending the remaining items when the server ends.
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
