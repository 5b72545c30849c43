//! Determines when changes are published.

use std::time::Duration;

use tokio::time::Instant;

/// Time without events in the folder before a change is published, so that a burst of files becomes
/// one change.
const QUIET_PERIOD: Duration = Duration::from_millis(40);

/// Time to wait for another plugin while plugins are still loading. After it, the loaded plugins
/// are published.
const NEXT_LOAD_WAIT: Duration = Duration::from_millis(150);

/// Maximum delay before a change is published, however busy the folder is.
const MAX_PUBLISH_DELAY: Duration = Duration::from_secs(2);

/// Times that determine when changes are published.
pub(crate) struct PublishSchedule {
    /// The time of the oldest unpublished change.
    oldest_change: Option<Instant>,
    /// The time of the last event in the folder.
    last_event: Instant,
    /// The time at which the last load ended.
    last_load: Instant,
}

impl PublishSchedule {
    /// Creates a schedule without changes.
    pub(crate) fn new() -> Self {
        let now = Instant::now();
        Self {
            oldest_change: None,
            last_event: now.checked_sub(QUIET_PERIOD).unwrap_or(now),
            last_load: now,
        }
    }

    /// Records an event in the folder.
    pub(crate) fn record_event(&mut self) {
        self.last_event = Instant::now();
    }

    /// Records a change of the folder that a scan found. There may have been no event.
    pub(crate) fn record_folder_change(&mut self) {
        self.last_event = Instant::now();
        self.oldest_change.get_or_insert(self.last_event);
    }

    /// Records the end of a load that changes something.
    pub(crate) fn record_load(&mut self) {
        self.last_load = Instant::now();
        self.oldest_change.get_or_insert(self.last_load);
    }

    /// Requests that a snapshot is published even if nothing changes.
    pub(crate) fn request_snapshot(&mut self) {
        self.oldest_change.get_or_insert_with(Instant::now);
    }

    /// Records that all changes are published now.
    pub(crate) fn clear(&mut self) {
        self.oldest_change = None;
    }

    /// Returns the time at which the current changes should be published; `None` if there are none.
    /// If the first plugins are ready, nothing else is waited for.
    pub(crate) fn publish_time(&self, is_loading: bool, are_first_ready: bool) -> Option<Instant> {
        let changed = self.oldest_change?;
        if are_first_ready {
            return Some(self.last_event);
        }
        let quiet = self.last_event + QUIET_PERIOD;
        let due = if is_loading {
            quiet.max(self.last_load + NEXT_LOAD_WAIT)
        } else {
            quiet
        };
        Some(due.min(changed + MAX_PUBLISH_DELAY))
    }
}
