//! Backoff between retries.

use std::time::Duration;

/// Maximum delay that a response can request.
const MAX_REQUESTED_DELAY: Duration = Duration::from_mins(5);

/// Exponential backoff with jitter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RetryBackoff {
    initial_delay: Duration,
    max_delay: Duration,
    failures: u32,
}

impl RetryBackoff {
    /// Creates a backoff that grows from `initial_delay` to `max_delay`. Each delay is reduced by
    /// up to half, so that many servers do not retry at the same moment.
    pub(crate) fn new(initial_delay: Duration, max_delay: Duration) -> Self {
        Self {
            initial_delay,
            max_delay,
            failures: 0,
        }
    }

    /// Resets the backoff after a success.
    pub(crate) fn reset(&mut self) {
        self.failures = 0;
    }

    /// Returns the delay after a failure: at least `requested`, if the response requested a delay,
    /// up to a maximum.
    pub(crate) fn next_delay(&mut self, requested: Option<Duration>) -> Duration {
        let doubled = self
            .initial_delay
            .saturating_mul(1 << self.failures.min(16))
            .min(self.max_delay);
        self.failures += 1;
        let jittered = doubled.mul_f64(0.5 + fastrand::f64() / 2.0);
        // Respect the delay that the receiver requests.
        requested.map_or(jittered, |wished| {
            jittered.max(wished.min(MAX_REQUESTED_DELAY))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_grow_to_the_maximum_and_requested_delays_are_respected() {
        let second = Duration::from_secs(1);
        let mut backoff = RetryBackoff::new(second, 30 * second);
        for most in [1, 2, 4, 8, 16, 30, 30] {
            let wait = backoff.next_delay(None);
            assert!(
                most * second / 2 <= wait && wait <= most * second,
                "{wait:?}"
            );
        }
        assert_eq!(backoff.next_delay(Some(100 * second)), 100 * second);
        assert_eq!(backoff.next_delay(Some(Duration::MAX)), MAX_REQUESTED_DELAY);
        for _ in 0..100 {
            backoff.next_delay(None);
        }
        backoff.reset();
        assert!(backoff.next_delay(Some(Duration::ZERO)) <= second);
    }
}
