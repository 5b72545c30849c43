//! What a guest reports while its call is, or may become, a task.

use std::sync::Arc;

use toolbay_model::{LogLevel, Observer, Progress};

use super::live::Live;
use crate::updates::Updates;

/// Passes progress on to the task, and everything to the client that waits for the response to its request.
pub(crate) struct TaskObserver {
    pub(crate) live: Arc<Live>,
    /// Who wants to know of resources that change.
    pub(crate) updates: Updates,
}

impl Observer for TaskObserver {
    fn log(&self, level: LogLevel, message: &str) {
        self.live.with_peer(|peer| peer.log(level, message));
    }

    fn progress(&self, progress: Progress) {
        self.live.say(&progress);
        self.live.with_peer(|peer| peer.progress(progress));
    }

    fn resource_updated(&self, uri: &str) {
        self.updates.changed(uri);
    }

    fn cancelled(&self) -> bool {
        self.live.cancel.is_cancelled()
    }
}
