//! Counts calls against a rate limit.

use std::time::Duration;

use governor::clock::{Clock as _, DefaultClock};
use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use toolbay_model::RateLimit;

/// Counts calls against a [`RateLimit`] (token bucket).
#[derive(Debug)]
pub(crate) struct RateCounter {
    limit: RateLimit,
    bucket: DefaultDirectRateLimiter,
}

impl RateCounter {
    /// A full bucket; `None` if the limit is invalid.
    pub(crate) fn new(limit: RateLimit) -> Option<Self> {
        let quota = Quota::with_period(limit.share())?.allow_burst(limit.calls);
        Some(Self { limit, bucket: RateLimiter::direct(quota) })
    }

    /// The limit.
    pub(crate) fn limit(&self) -> RateLimit {
        self.limit
    }

    /// Takes one call.
    ///
    /// # Errors
    ///
    /// The limit is exceeded; the value is the time until the next call is allowed.
    pub(crate) fn take(&self) -> Result<(), Duration> {
        self.bucket.check().map_err(|not_until| not_until.wait_time_from(DefaultClock::default().now()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_up_to_the_limit_are_allowed() {
        let limit: RateLimit = toml::from_str("calls = 3\nper = \"1h\"").unwrap();
        let rate = RateCounter::new(limit).unwrap();
        for _ in 0..3 {
            rate.take().unwrap();
        }
        let wait = rate.take().unwrap_err();
        assert!(wait > Duration::from_mins(19) && wait <= Duration::from_mins(20), "{wait:?}");
        assert_eq!(rate.limit().to_string(), "3 calls per 1h");
    }
}
