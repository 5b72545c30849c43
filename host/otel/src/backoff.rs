//! How long to wait before something is tried again.

use std::time::Duration;

/// The longest wait that an answer can ask for.
const LONGEST_WISH: Duration = Duration::from_mins(5);

/// Waits that grow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RetryBackoff {
    first: Duration,
    longest: Duration,
    failures: u32,
}

impl RetryBackoff {
    /// Waits from `first` to `longest`, or less by up to a half: many servers must not come back at the same moment.
    pub(crate) fn new(first: Duration, longest: Duration) -> Self {
        Self { first, longest, failures: 0 }
    }

    /// It worked.
    pub(crate) fn reset(&mut self) {
        self.failures = 0;
    }

    /// How long to wait after a failure, if the answer asks for `wished`.
    pub(crate) fn next(&mut self, wished: Option<Duration>) -> Duration {
        let doubled = self.first.saturating_mul(1 << self.failures.min(16)).min(self.longest);
        self.failures += 1;
        let jittered = doubled.mul_f64(0.5 + fastrand::f64() / 2.0);
        // Whoever says when is not asked earlier.
        wished.map_or(jittered, |wished| jittered.max(wished.min(LONGEST_WISH)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_up_to_the_longest_and_a_wish_is_granted_within_reason() {
        let second = Duration::from_secs(1);
        let mut backoff = RetryBackoff::new(second, 30 * second);
        for most in [1, 2, 4, 8, 16, 30, 30] {
            let wait = backoff.next(None);
            assert!(most * second / 2 <= wait && wait <= most * second, "{wait:?}");
        }
        assert_eq!(backoff.next(Some(100 * second)), 100 * second);
        assert_eq!(backoff.next(Some(Duration::MAX)), LONGEST_WISH);
        for _ in 0..100 {
            backoff.next(None);
        }
        backoff.reset();
        assert!(backoff.next(Some(Duration::ZERO)) <= second);
    }
}
