//! Rate limits: a number of calls per period.

use std::fmt;
use std::num::NonZeroU32;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::limits::milliseconds;
use crate::setting::{positive, time};

/// A rate limit (`[rate_limit]`): `calls = 60`, `per = "1m"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "Written")]
pub struct RateLimit {
    /// Calls per period, and the largest burst. At least 1.
    pub calls: NonZeroU32,
    /// The period, above 0 and at most one year. Serialized as `per_ms`, in milliseconds.
    #[serde(rename(serialize = "per_ms"), serialize_with = "in_milliseconds")]
    pub per: Duration,
}

/// The longest period: one year. Time is counted in 64-bit nanoseconds, with room for several periods.
const LONGEST: Duration = Duration::from_hours(8766);

/// The table in the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    #[serde(deserialize_with = "positive")]
    calls: u32,
    #[serde(deserialize_with = "period")]
    per: Duration,
}

fn in_milliseconds<S: Serializer>(per: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(milliseconds(*per))
}

fn period<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    time(deserializer, LONGEST)
}

impl TryFrom<Written> for RateLimit {
    type Error = &'static str;

    fn try_from(Written { calls, per }: Written) -> Result<Self, Self::Error> {
        let limit = NonZeroU32::new(calls).map(|calls| Self { calls, per });
        // Each call has a share of the period, which must be at least one nanosecond.
        limit.filter(|limit| !limit.share().is_zero()).ok_or("per is too short for this many calls")
    }
}

impl RateLimit {
    /// A limit of `calls` per minute; `None` if `calls` is 0.
    pub fn per_minute(calls: u32) -> Option<Self> {
        NonZeroU32::new(calls).map(|calls| Self { calls, per: Duration::from_mins(1) })
    }

    /// The period divided by the number of calls.
    pub fn share(&self) -> Duration {
        self.per / self.calls.get()
    }
}

impl fmt::Display for RateLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let calls = self.calls.get();
        let noun = if calls == 1 { "call" } else { "calls" };
        write!(f, "{calls} {noun} per {}", crate::text::duration(self.per))
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
}
