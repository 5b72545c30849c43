//! Usage of a plugin's most recent calls, and the limits that it suggests.

use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

use bytesize::ByteSize;
use parking_lot::Mutex;
use toolbay_model::CallUsage;
use toolbay_model::text::{format_duration, format_thousands};

/// Maximum number of recorded calls.
const MAX_RECENT_CALLS: usize = 1_000;

/// Factor by which suggested limits exceed the maximum usage.
const MARGIN: u64 = 2;

/// Usage of the most recent calls of one loaded plugin. A reloaded plugin starts with an empty one.
#[derive(Debug, Default)]
pub(crate) struct RecentUsage {
    calls: Mutex<VecDeque<UsageSample>>,
}

#[derive(Clone, Copy, Debug)]
struct UsageSample {
    usage: CallUsage,
    /// True if a limit stopped the call, which would have used more.
    stopped: bool,
}

/// Limits that would have sufficed for the recorded calls, with a margin. Displays as a `limits`
/// line of a grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LimitSuggestion {
    /// Number of recorded calls.
    pub(crate) calls: usize,
    /// Number of recorded calls that a limit stopped.
    pub(crate) stopped: usize,
    /// See [`toolbay_model::Limits::fuel`].
    pub(crate) fuel: u64,
    /// See [`toolbay_model::Limits::timeout`].
    pub(crate) timeout: Duration,
    /// See [`toolbay_model::Limits::memory`].
    pub(crate) memory: ByteSize,
}

impl RecentUsage {
    /// Records a call. `stopped` is true if a limit stopped it.
    pub(crate) fn record(&self, usage: CallUsage, stopped: bool) {
        let mut calls = self.calls.lock();
        if calls.len() == MAX_RECENT_CALLS {
            calls.pop_front();
        }
        calls.push_back(UsageSample { usage, stopped });
    }

    /// Returns the maximum fuel, time and memory of the recorded calls.
    pub(crate) fn maximum(&self) -> CallUsage {
        let calls = self.calls.lock();
        let usages = calls.iter().map(|call| call.usage);
        usages.fold(CallUsage::default(), |most, usage| CallUsage {
            fuel: most.fuel.max(usage.fuel),
            wall: most.wall.max(usage.wall),
            memory: most.memory.max(usage.memory),
            ..most
        })
    }

    /// Returns limits of twice the maximum usage of the recorded calls, rounded up. Returns `None`
    /// if there were no calls.
    pub(crate) fn suggest(&self) -> Option<LimitSuggestion> {
        let calls = self.calls.lock();
        let max_usage =
            |amount: fn(&CallUsage) -> u64| calls.iter().map(|call| amount(&call.usage)).max();
        let wall = max_usage(|usage| u64::try_from(usage.wall.as_millis()).unwrap_or(u64::MAX))?;
        Some(LimitSuggestion {
            calls: calls.len(),
            stopped: calls.iter().filter(|call| call.stopped).count(),
            fuel: with_margin(max_usage(|usage| usage.fuel)?).max(1_000_000),
            // Less than a second depends on the machine rather than on the plugin.
            timeout: Duration::from_secs(with_margin(wall).div_ceil(1_000).max(1)),
            memory: ByteSize::mib(
                max_usage(|usage| usage.memory)?
                    .saturating_mul(MARGIN)
                    .div_ceil(1 << 20)
                    .max(1),
            ),
        })
    }
}

/// Returns `n` times [`MARGIN`], rounded up to one significant digit.
fn with_margin(n: u64) -> u64 {
    let target = n.saturating_mul(MARGIN);
    let unit = 10_u64.saturating_pow(target.checked_ilog10().unwrap_or_default());
    target.div_ceil(unit).saturating_mul(unit)
}

impl LimitSuggestion {
    /// Returns the line to copy into a grant, without the number of calls.
    pub(crate) fn grant_line(&self) -> String {
        let fuel = format_thousands(self.fuel).replace(',', "_");
        let timeout = format_duration(self.timeout);
        let memory = self.memory.as_u64() >> 20;
        format!("limits = {{ fuel = {fuel}, timeout = \"{timeout}\", memory = \"{memory}MiB\" }}")
    }
}

/// Writes the line to copy into a grant, and the number of calls.
impl fmt::Display for LimitSuggestion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.grant_line())?;
        write!(f, " (twice the maximum of {} calls", self.calls)?;
        match self.stopped {
            0 => f.write_str(")"),
            1 => f.write_str("; a limit stopped one of them, which would have used more)"),
            n => write!(
                f,
                "; limits stopped {n} of them, which would have used more)"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(fuel: u64, wall_ms: u64, memory: u64) -> CallUsage {
        CallUsage {
            fuel,
            wall: Duration::from_millis(wall_ms),
            memory,
            ..CallUsage::default()
        }
    }

    #[test]
    fn suggestions_depend_on_the_maximum_of_the_recent_calls() {
        let recent = RecentUsage::default();
        assert_eq!(recent.suggest(), None);
        recent.record(usage(123_456_789, 40, 3 << 20), false);
        recent.record(usage(5, 2_400, 1), true);
        assert_eq!(
            recent.suggest().unwrap().to_string(),
            "limits = { fuel = 300_000_000, timeout = \"5s\", memory = \"6MiB\" } (twice the maximum of 2 calls; a \
             limit stopped one of them, which would have used more)"
        );
        let maximum = recent.maximum();
        assert_eq!(
            (maximum.fuel, maximum.wall, maximum.memory),
            (123_456_789, Duration::from_millis(2_400), 3 << 20)
        );
        for _ in 0..MAX_RECENT_CALLS {
            recent.record(usage(1, 1, 1), false);
        }
        assert_eq!(
            recent.suggest().unwrap().to_string(),
            "limits = { fuel = 1_000_000, timeout = \"1s\", memory = \"1MiB\" } (twice the maximum of 1000 calls)"
        );
    }
}
