//! Log lines about rejected forms. The first one of each sender and reason has a line. Further ones
//! are counted.

use std::sync::Arc;

use toolbay_background::{RejectedCount, RejectionLog};

/// The rejected forms of a console. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct FormRejections(Arc<RejectionLog>);

impl Default for FormRejections {
    fn default() -> Self {
        Self(Arc::new(RejectionLog::new(write_count)))
    }
}

impl FormRejections {
    /// Logs a rejected form of this sender, an address or a viewer, if it is known. Only counts it
    /// if the sender had one before.
    pub(crate) fn warn(&self, sender: Option<String>, description: &'static str) {
        let sender = sender.unwrap_or_default();
        if self.0.needs_line(&sender, description) {
            tracing::warn!(sender, "console: {description} was rejected");
        }
    }
}

fn write_count(count: &RejectedCount) {
    tracing::warn!(sender = count.source, "console: {count}");
}
