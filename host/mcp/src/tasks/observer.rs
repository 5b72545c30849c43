//! Observes a guest while its call is, or may become, a task.

use std::sync::Arc;

use toolbay_model::{CallObserver, LogLevel, ProgressUpdate};

use super::running_tasks::LiveTask;
use crate::exchange::resource_subscriptions::ResourceUpdates;

/// Forwards progress to the task, and all events to the client that waits for the response.
pub(crate) struct TaskObserver {
    pub(crate) live: Arc<LiveTask>,
    /// The subscribers to changes of resources.
    pub(crate) updates: ResourceUpdates,
}

impl CallObserver for TaskObserver {
    fn log(&self, level: LogLevel, message: &str) {
        self.live.with_peer(|peer| peer.log(level, message));
    }

    fn progress(&self, progress: ProgressUpdate) {
        self.live.report_progress(&progress);
        self.live.with_peer(|peer| peer.progress(progress));
    }

    fn resource_updated(&self, uri: &str) {
        self.updates.notify_changed(uri);
    }

    fn is_cancelled(&self) -> bool {
        self.live.cancel.is_cancelled()
    }
}
