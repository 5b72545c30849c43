//! Rate limits: a number of calls per period, for each caller or for all callers together.

use std::fmt;
use std::num::NonZeroU32;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::limits::milliseconds;
use crate::setting::{positive, time};

/// A rate limit (`[caller_rate_limit]`): `calls = 60`, `per = "1m"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "RateLimitTable")]
pub struct RateLimit {
    /// Calls per period, and the largest burst. At least 1.
    pub calls: NonZeroU32,
    /// The period, above 0 and at most one year. Serialized as `per_ms`, in milliseconds.
    #[serde(rename(serialize = "per_ms"), serialize_with = "in_milliseconds")]
    pub per: Duration,
}

/// The rate limit of a tool (`[rate_limit]`): one for each caller, or with `shared = true` one for
/// all callers together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "ToolRateLimitTable")]
pub struct ToolRateLimit {
    /// The limit.
    #[serde(flatten)]
    pub limit: RateLimit,
    /// True if all callers share the limit. Default: false.
    pub shared: bool,
}

/// Maximum period: one year. Time is counted in 64-bit nanoseconds, which can represent several
/// periods.
const MAX_PERIOD: Duration = Duration::from_hours(8766);

/// The table of a limit in a configuration file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RateLimitTable {
    #[serde(deserialize_with = "positive")]
    calls: u32,
    #[serde(deserialize_with = "period")]
    per: Duration,
}

/// Like [`RateLimitTable`], with the additional keys of a tool's limit.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ToolRateLimitTable {
    #[serde(deserialize_with = "positive")]
    calls: u32,
    #[serde(deserialize_with = "period")]
    per: Duration,
    #[serde(default)]
    shared: bool,
}

fn in_milliseconds<S: Serializer>(per: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(milliseconds(*per))
}

fn period<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    time(deserializer, MAX_PERIOD)
}

impl TryFrom<RateLimitTable> for RateLimit {
    type Error = &'static str;

    fn try_from(RateLimitTable { calls, per }: RateLimitTable) -> Result<Self, Self::Error> {
        let limit = NonZeroU32::new(calls).map(|calls| Self { calls, per });
        // Each call has a share of the period, which must be at least one nanosecond.
        limit
            .filter(|limit| !limit.call_interval().is_zero())
            .ok_or("per is too short for this many calls")
    }
}

impl TryFrom<ToolRateLimitTable> for ToolRateLimit {
    type Error = &'static str;

    fn try_from(
        ToolRateLimitTable { calls, per, shared }: ToolRateLimitTable,
    ) -> Result<Self, Self::Error> {
        Ok(Self {
            limit: RateLimitTable { calls, per }.try_into()?,
            shared,
        })
    }
}

impl RateLimit {
    /// Returns a limit of `calls` per minute; `None` if `calls` is 0.
    pub fn per_minute(calls: u32) -> Option<Self> {
        NonZeroU32::new(calls).map(|calls| Self {
            calls,
            per: Duration::from_mins(1),
        })
    }

    /// Returns the period divided by the number of calls.
    pub fn call_interval(&self) -> Duration {
        self.per / self.calls.get()
    }
}

impl From<RateLimit> for ToolRateLimit {
    /// Returns a limit that applies to each caller separately.
    fn from(limit: RateLimit) -> Self {
        Self {
            limit,
            shared: false,
        }
    }
}

impl fmt::Display for ToolRateLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}{}",
            self.limit,
            if self.shared {
                ", shared by all callers"
            } else {
                ""
            }
        )
    }
}

impl fmt::Display for RateLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let calls = self.calls.get();
        let noun = if calls == 1 { "call" } else { "calls" };
        write!(
            f,
            "{calls} {noun} per {}",
            crate::text::format_duration(self.per)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_calls_and_a_period_of_zero_are_rejected() {
        let read = |calls: u32, per: &str| {
            serde_json::from_value::<RateLimit>(serde_json::json!({"calls": calls, "per": per}))
        };
        assert!(read(0, "1m").is_err());
        assert!(read(1, "0s").is_err());
        assert!(read(1_000, "1ns").is_err());
        assert!(read(1, "600years").is_err());
        assert_eq!(read(1, "30days").unwrap().to_string(), "1 call per 30 days");
        assert_eq!(read(3, "1h").unwrap().to_string(), "3 calls per 1h");
    }

    #[test]
    fn tool_limit_is_per_caller_or_shared() {
        let read = |text: &str| serde_json::from_str::<ToolRateLimit>(text);
        let per_caller = read(r#"{"calls": 3, "per": "1h"}"#).unwrap();
        assert_eq!(
            (per_caller.shared, per_caller.to_string().as_str()),
            (false, "3 calls per 1h")
        );
        let shared = read(r#"{"calls": 3, "per": "1h", "shared": true}"#).unwrap();
        assert_eq!(shared.to_string(), "3 calls per 1h, shared by all callers");
        assert_eq!(
            serde_json::to_value(shared).unwrap(),
            serde_json::json!({"calls": 3, "per_ms": 3_600_000, "shared": true})
        );
        assert!(read(r#"{"calls": 0, "per": "1h", "shared": true}"#).is_err());
        assert!(read(r#"{"calls": 3, "per": "1h", "share": true}"#).is_err());
        // A client's limit always applies to one client.
        assert!(
            serde_json::from_str::<RateLimit>(r#"{"calls": 3, "per": "1h", "shared": true}"#)
                .is_err()
        );
    }
}
