//! Log lines about rejected forms. The first one of each sender and reason has a line. Further ones
//! are counted, so that clients without access cannot fill the log.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use toolbay_model::RejectedRequests;

/// The rejected forms of a console.
#[derive(Debug, Default)]
pub(crate) struct RejectionLog(Mutex<RejectedRequests>);

impl RejectionLog {
    /// Logs a rejected form of this sender, an address or a viewer, if it is known. Only counts it
    /// if the sender had one before.
    pub(crate) fn warn(self: &Arc<Self>, sender: Option<String>, what: &'static str) {
        let sender = sender.unwrap_or_default();
        if self.needs_line(&sender, what) {
            tracing::warn!(sender, "console: {what} was rejected");
        }
    }

    fn needs_line(self: &Arc<Self>, sender: &str, what: &'static str) -> bool {
        // The lock is held for a few comparisons and never across an await.
        let mut requests = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if requests.is_empty() {
            tokio::spawn(Arc::clone(self).write_counts_when_due());
        }
        requests.note(sender, what, Instant::now())
    }

    /// Writes the counts as long as there are any.
    async fn write_counts_when_due(self: Arc<Self>) {
        loop {
            let (counts, next) = self
                .0
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take_counts(Instant::now(), false);
            for count in counts {
                tracing::warn!(sender = count.source, "console: {count}");
            }
            let Some(next) = next else { return };
            tokio::time::sleep_until(next.into()).await;
        }
    }
}
