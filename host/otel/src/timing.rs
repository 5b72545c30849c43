//! Delays and timeouts of the exporter.

use std::time::Duration;

/// Delays and timeouts of the exporter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ExportTiming {
    /// Time that an item waits for further items of the same request.
    pub(crate) batch_delay: Duration,
    /// Initial retry delay.
    pub(crate) initial_retry_delay: Duration,
    /// Maximum retry delay.
    pub(crate) max_retry_delay: Duration,
    /// Time after which a request is no longer retried.
    pub(crate) retry_timeout: Duration,
    /// Time limit for sending the remaining items when the server ends.
    pub(crate) shutdown_timeout: Duration,
}

impl Default for ExportTiming {
    fn default() -> Self {
        Self {
            batch_delay: Duration::from_secs(1),
            initial_retry_delay: Duration::from_secs(1),
            max_retry_delay: Duration::from_secs(30),
            retry_timeout: Duration::from_mins(5),
            shutdown_timeout: Duration::from_secs(2),
        }
    }
}
