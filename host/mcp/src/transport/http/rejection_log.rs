//! Log lines about rejected requests, by network. Further requests are counted.

use std::sync::Arc;

use toolbay_background::{RejectedCount, RejectionLog};

/// Creates the log of the rejected requests of a server.
pub(super) fn new_rejection_log() -> Arc<RejectionLog> {
    Arc::new(RejectionLog::new(write_count))
}

fn write_count(count: &RejectedCount) {
    tracing::warn!(peer = count.source, "{count}");
}
