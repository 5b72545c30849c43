//! Counts calls against a rate limit.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use governor::clock::{Clock as _, DefaultClock};
use governor::{DefaultDirectRateLimiter, DefaultKeyedRateLimiter, Quota, RateLimiter};
use toolbay_model::RateLimit;

/// Counts calls against a [`RateLimit`] (token bucket).
#[derive(Debug)]
pub(crate) struct RateCounter {
    limit: RateLimit,
    bucket: DefaultDirectRateLimiter,
}

impl RateCounter {
    /// Creates a full bucket. Returns `None` if the limit is invalid.
    pub(crate) fn new(limit: RateLimit) -> Option<Self> {
        let quota = Quota::with_period(limit.call_interval())?.allow_burst(limit.calls);
        Some(Self {
            limit,
            bucket: RateLimiter::direct(quota),
        })
    }

    /// Returns the limit.
    pub(crate) fn limit(&self) -> RateLimit {
        self.limit
    }

    /// Takes one call.
    ///
    /// # Errors
    ///
    /// The limit is exceeded; the value is the time until the next call is allowed.
    pub(crate) fn take(&self) -> Result<(), Duration> {
        self.bucket
            .check()
            .map_err(|not_until| not_until.wait_time_from(DefaultClock::default().now()))
    }
}

/// Minimum number of counters at which full ones are dropped.
const MIN_SWEEP_THRESHOLD: usize = 64;

/// Counts the calls of each tool of a plugin against the same [`RateLimit`]. A tool has a counter
/// only while its bucket is not full, so that tools that are not called take no memory.
#[derive(Debug)]
pub(crate) struct ToolRates {
    limit: RateLimit,
    /// By the tool's name without the prefix.
    buckets: DefaultKeyedRateLimiter<String>,
    /// Number of counters at which full ones are dropped.
    sweep_threshold: AtomicUsize,
}

impl ToolRates {
    /// Creates full buckets. Returns `None` if the limit is invalid.
    pub(crate) fn new(limit: RateLimit) -> Option<Self> {
        let quota = Quota::with_period(limit.call_interval())?.allow_burst(limit.calls);
        Some(Self {
            limit,
            buckets: RateLimiter::keyed(quota),
            sweep_threshold: AtomicUsize::new(MIN_SWEEP_THRESHOLD),
        })
    }

    /// Returns the limit.
    pub(crate) fn limit(&self) -> RateLimit {
        self.limit
    }

    /// Takes one call of a tool.
    ///
    /// # Errors
    ///
    /// Like those of [`RateCounter::take`].
    pub(crate) fn take(&self, tool: &str) -> Result<(), Duration> {
        if self.buckets.len() >= self.sweep_threshold.load(Ordering::Relaxed) {
            self.buckets.retain_recent();
            self.buckets.shrink_to_fit();
            self.sweep_threshold.store(
                (2 * self.buckets.len()).max(MIN_SWEEP_THRESHOLD),
                Ordering::Relaxed,
            );
        }
        let taken = self.buckets.check_key(&tool.to_owned());
        taken.map_err(|not_until| not_until.wait_time_from(DefaultClock::default().now()))
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
        assert!(
            wait > Duration::from_mins(19) && wait <= Duration::from_mins(20),
            "{wait:?}"
        );
        assert_eq!(rate.limit().to_string(), "3 calls per 1h");
    }

    #[test]
    fn each_tool_has_a_separate_rate() {
        let rates = ToolRates::new(toml::from_str("calls = 1\nper = \"1h\"").unwrap()).unwrap();
        rates.take("a").unwrap();
        rates.take("b").unwrap();
        assert!(rates.take("a").is_err() && rates.take("b").is_err());
    }

    #[test]
    fn full_buckets_are_dropped() {
        let rates = ToolRates::new(toml::from_str("calls = 1\nper = \"1ns\"").unwrap()).unwrap();
        for tool in 0..10 * MIN_SWEEP_THRESHOLD {
            rates.take(&tool.to_string()).unwrap();
        }
        assert!(
            rates.buckets.len() <= MIN_SWEEP_THRESHOLD,
            "{}",
            rates.buckets.len()
        );
    }
}
