//! Moments in the future.

use std::time::Duration;

use tokio::time::Instant;

/// The moment after `timeout`, at most `deadline`. A guest can ask for a timeout of centuries.
pub(crate) fn earliest(timeout: Duration, deadline: Instant) -> Instant {
    after(Instant::now(), timeout).map_or(deadline, |at| at.min(deadline))
}

/// The moment `timeout` after `from`. `None` if that never comes.
pub(crate) fn after(from: Instant, timeout: Duration) -> Option<Instant> {
    from.checked_add(timeout)
}
