//! Counts calls against a rate limit.

use std::time::Duration;

use governor::clock::{Clock as _, DefaultClock};
use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use toolbay_model::RateLimit;

/// Counts what happens against a [`RateLimit`].
#[derive(Debug)]
pub(crate) struct RateCounter {
    limit: RateLimit,
    bucket: DefaultDirectRateLimiter,
}

impl RateCounter {
    /// A full allowance; `None` for a limit that is not valid.
    pub(crate) fn new(limit: RateLimit) -> Option<Self> {
        let quota = Quota::with_period(limit.share())?.allow_burst(limit.calls);
        Some(Self { limit, bucket: RateLimiter::direct(quota) })
    }

    /// The limit.
    pub(crate) fn limit(&self) -> RateLimit {
        self.limit
    }

    /// Takes one call out of the allowance.
    ///
    /// # Errors
    ///
    /// There is none left; the value is how long until there is.
    pub(crate) fn take(&self) -> Result<(), Duration> {
        self.bucket.check().map_err(|not_until| not_until.wait_time_from(DefaultClock::default().now()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_as_the_limit_and_no_more() {
        let limit: RateLimit = toml::from_str("calls = 3\nper = \"1h\"").unwrap();
        let rate = RateCounter::new(limit).unwrap();
        for _ in 0..3 {
            rate.take().unwrap();
        }
        let wait = rate.take().unwrap_err();
        assert!(wait > Duration::from_mins(19) && wait <= Duration::from_mins(20), "{wait:?}");
        assert_eq!(rate.limit().to_string(), "3 calls in 1h");
    }
}
