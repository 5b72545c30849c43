//! Log lines about rejected requests. The first one of each source and reason has a line. Further
//! ones are counted, so that clients without access cannot fill the log.

use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;

use crate::rejected_requests::{RejectedCount, RejectedRequests};

/// The rejected requests of a server.
#[derive(Debug)]
pub struct RejectionLog {
    requests: Mutex<RejectedRequests>,
    /// Writes the line for a count.
    write_count: fn(&RejectedCount),
}

impl RejectionLog {
    /// Creates a log without rejections. `write_count` writes the line for counted rejections.
    pub fn new(write_count: fn(&RejectedCount)) -> Self {
        Self {
            requests: Mutex::default(),
            write_count,
        }
    }

    /// Notes a rejected request of this source. Returns whether the caller must write its line.
    /// Otherwise it is counted, and a later line contains the count. Must be called on a tokio
    /// runtime.
    pub fn needs_line(self: &Arc<Self>, source: &str, reason: &'static str) -> bool {
        // The lock is held for a few comparisons and never across an await.
        let mut requests = self.requests.lock();
        if requests.is_empty() {
            tokio::spawn(Arc::clone(self).write_counts_when_due());
        }
        requests.note(source, reason, Instant::now())
    }

    /// Writes the counts as long as there are any.
    async fn write_counts_when_due(self: Arc<Self>) {
        while let Some(next) = self.write_counts(false) {
            tokio::time::sleep_until(next.into()).await;
        }
    }

    /// Writes the counts that are due, or all of them. Returns when the next ones are due.
    pub fn write_counts(&self, writes_all: bool) -> Option<Instant> {
        let (counts, next) = self.requests.lock().take_counts(Instant::now(), writes_all);
        for count in &counts {
            (self.write_count)(count);
        }
        next
    }
}
