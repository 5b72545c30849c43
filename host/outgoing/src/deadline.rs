//! Deadlines from timeouts.

use std::time::Duration;

use tokio::time::Instant;

/// Returns the instant `timeout` from now, at most `deadline`. A guest can request a timeout of
/// centuries.
pub(crate) fn timeout_deadline(timeout: Duration, deadline: Instant) -> Instant {
    instant_after(Instant::now(), timeout).map_or(deadline, |at| at.min(deadline))
}

/// Returns the instant `timeout` after `from`, or `None` if it cannot be represented.
pub(crate) fn instant_after(from: Instant, timeout: Duration) -> Option<Instant> {
    from.checked_add(timeout)
}
