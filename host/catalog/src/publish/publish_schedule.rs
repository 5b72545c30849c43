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
    changed: Option<Instant>,
    /// The time of the last event in the folder.
    busy: Instant,
    /// The time at which the last load ended.
    ready: Instant,
}

impl PublishSchedule {
    /// Creates a schedule without changes.
    pub(crate) fn new() -> Self {
        let now = Instant::now();
        Self {
            changed: None,
            busy: now.checked_sub(QUIET_PERIOD).unwrap_or(now),
            ready: now,
        }
    }

    /// Records an event in the folder.
    pub(crate) fn record_event(&mut self) {
        self.busy = Instant::now();
    }

    /// Records a change of the folder that a scan found. There may have been no event.
    pub(crate) fn record_folder_change(&mut self) {
        self.busy = Instant::now();
        self.changed.get_or_insert(self.busy);
    }

    /// Records the end of a load that changes something.
    pub(crate) fn record_load(&mut self) {
        self.ready = Instant::now();
        self.changed.get_or_insert(self.ready);
    }

    /// Requests that a snapshot is published even if nothing changes.
    pub(crate) fn request_snapshot(&mut self) {
        self.changed.get_or_insert_with(Instant::now);
    }

    /// Records that all changes are published now.
    pub(crate) fn clear(&mut self) {
        self.changed = None;
    }

    /// Returns the time at which the current changes should be published; `None` if there are none.
    /// If the first plugins are ready, nothing else is waited for.
    pub(crate) fn publish_time(&self, is_loading: bool, are_first_ready: bool) -> Option<Instant> {
        let changed = self.changed?;
        if are_first_ready {
            return Some(self.busy);
        }
        let quiet = self.busy + QUIET_PERIOD;
        let due = if is_loading {
            quiet.max(self.ready + NEXT_LOAD_WAIT)
        } else {
            quiet
        };
        Some(due.min(changed + MAX_PUBLISH_DELAY))
    }
}
