//! Log lines about rejected requests. The first one of each network and reason has a line. Further
//! ones are counted, so that clients without access cannot fill the log.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use toolbay_model::RejectedRequests;

/// The rejected requests of a server.
#[derive(Debug, Default)]
pub(super) struct RejectionLog(Mutex<RejectedRequests>);

impl RejectionLog {
    /// Notes a rejected request of this network. Returns whether the caller must write its line.
    /// Otherwise it is counted, and a later line contains the count.
    pub(super) fn needs_line(self: &Arc<Self>, network: &str, reason: &'static str) -> bool {
        // The lock is held for a few comparisons and never across an await.
        let mut requests = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if requests.is_empty() {
            tokio::spawn(Arc::clone(self).write_counts_when_due());
        }
        requests.note(network, reason, Instant::now())
    }

    /// Writes the counts as long as there are any.
    async fn write_counts_when_due(self: Arc<Self>) {
        while let Some(next) = self.write_counts(false) {
            tokio::time::sleep_until(next.into()).await;
        }
    }

    /// Writes the counts that are due, or all of them. Returns when the next ones are due.
    pub(super) fn write_counts(&self, all: bool) -> Option<Instant> {
        let (counts, next) = self
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take_counts(Instant::now(), all);
        for count in counts {
            tracing::warn!(peer = count.source, "{count}");
        }
        next
    }
}
