//! How often something may happen: a number of calls in a period.

use std::fmt;
use std::num::NonZeroU32;
use std::time::Duration;

use governor::clock::{Clock as _, DefaultClock};
use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use serde::{Deserialize, Serialize};

use crate::limits::milliseconds;
use crate::toml_file::setting::{positive, time};

/// A `[rate_limit]` table: `calls = 60`, `per = "1m"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "Written")]
pub struct RateLimit {
    /// Calls that may come at once, and in one period on average.
    pub calls: NonZeroU32,
    /// The period; in milliseconds for programs.
    #[serde(rename(serialize = "per_ms"), serialize_with = "in_milliseconds")]
    pub per: Duration,
}

fn in_milliseconds<S: serde::Serializer>(per: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(milliseconds(*per))
}

/// The longest period. Time is counted in nanoseconds of 64 bits, with room for several periods.
const LONGEST: Duration = Duration::from_hours(8766);

/// What stands in the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    #[serde(deserialize_with = "positive")]
    calls: u32,
    #[serde(deserialize_with = "period")]
    per: Duration,
}

fn period<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    time(deserializer, LONGEST)
}

impl TryFrom<Written> for RateLimit {
    type Error = &'static str;

    fn try_from(Written { calls, per }: Written) -> Result<Self, Self::Error> {
        let limit = NonZeroU32::new(calls).map(|calls| Self { calls, per });
        // The period must be divisible into so many parts.
        limit.filter(|limit| limit.quota().is_some()).ok_or("per is too short for so many calls")
    }
}

impl RateLimit {
    /// So many calls a minute; none is no limit.
    pub fn per_minute(calls: u32) -> Option<Self> {
        NonZeroU32::new(calls).map(|calls| Self { calls, per: Duration::from_mins(1) })
    }

    fn quota(&self) -> Option<Quota> {
        Some(Quota::with_period(self.per / self.calls.get())?.allow_burst(self.calls))
    }
}

impl fmt::Display for RateLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} calls in {}", self.calls, humantime::format_duration(self.per))
    }
}

/// Counts what happens against a [`RateLimit`].
#[derive(Debug)]
pub struct Rate {
    limit: RateLimit,
    bucket: DefaultDirectRateLimiter,
}

impl Rate {
    /// A full allowance; `None` for a limit that is not valid.
    pub fn new(limit: RateLimit) -> Option<Self> {
        Some(Self { limit, bucket: RateLimiter::direct(limit.quota()?) })
    }

    /// The limit.
    pub fn limit(&self) -> RateLimit {
        self.limit
    }

    /// Takes one call out of the allowance.
    ///
    /// # Errors
    ///
    /// There is none left; the value is how long until there is.
    pub fn take(&self) -> Result<(), Duration> {
        self.bucket.check().map_err(|not_until| not_until.wait_time_from(DefaultClock::default().now()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_as_the_limit_and_no_more() {
        let limit: RateLimit = toml::from_str("calls = 3\nper = \"1h\"").unwrap();
        let rate = Rate::new(limit).unwrap();
        for _ in 0..3 {
            rate.take().unwrap();
        }
        let wait = rate.take().unwrap_err();
        assert!(wait > Duration::from_mins(19) && wait <= Duration::from_mins(20), "{wait:?}");
        assert_eq!(rate.limit().to_string(), "3 calls in 1h");
    }

    #[test]
    fn none_at_all_and_no_time_are_not_limits() {
        assert!(toml::from_str::<RateLimit>("calls = 0\nper = \"1m\"").is_err());
        assert!(toml::from_str::<RateLimit>("calls = 1\nper = \"0s\"").is_err());
        assert!(toml::from_str::<RateLimit>("calls = 1_000\nper = \"1ns\"").is_err());
        assert!(toml::from_str::<RateLimit>("calls = 1\nper = \"600years\"").is_err());
        assert!(toml::from_str::<RateLimit>("calls = 1\nper = \"30days\"").is_ok());
    }
}
