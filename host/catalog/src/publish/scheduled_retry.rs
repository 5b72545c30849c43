//! Retries of failed loads.

use std::time::Duration;

use tokio::time::Instant;

/// Delay before the first retry of a failed load. It doubles with each retry.
const INITIAL_RETRY_DELAY: Duration = Duration::from_secs(1);

/// Maximum delay between two retries.
const MAX_RETRY_DELAY: Duration = Duration::from_mins(10);

/// The next retry of a failed load.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScheduledRetry {
    pub(crate) at: Instant,
    /// The delay before the retry.
    pub(crate) pause: Duration,
}

impl ScheduledRetry {
    /// Returns the first retry, or the one after `before`.
    pub(crate) fn after(before: Option<Self>) -> Self {
        let pause = before.map_or(INITIAL_RETRY_DELAY, |before| {
            (before.pause * 2).min(MAX_RETRY_DELAY)
        });
        Self {
            at: Instant::now() + pause,
            pause,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pause_between_retries_grows_to_a_maximum() {
        let mut retry = None;
        let pauses: Vec<u64> = (0..12)
            .map(|_| {
                let next = ScheduledRetry::after(retry);
                retry = Some(next);
                next.pause.as_secs()
            })
            .collect();
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 600, 600]);
    }
}
