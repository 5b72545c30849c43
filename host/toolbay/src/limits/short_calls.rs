//! Tracks whether a plugin's calls are short and never wait. Such a call may start on the thread
//! that received it.

use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

/// Maximum computing time of a short call, from the lookup of its plugin until its result is
/// checked. It may delay the protocol for that time.
const MAX_SHORT_CALL: Duration = Duration::from_micros(250);

/// Number of consecutive short calls after which a plugin counts as quick.
const MIN_SHORT_CALLS: i32 = 8;

/// Number of additional short calls required after a call that was not short. This bounds how often
/// a plugin can delay the protocol.
const LONG_CALL_PENALTY: i32 = 64;

/// Number of consecutive short calls, minus the penalty for one that was not short.
#[derive(Debug, Default)]
pub(crate) struct LatencyClass(AtomicI32);

impl LatencyClass {
    /// Returns whether the next call is probably short.
    pub(crate) fn is_quick(&self) -> bool {
        self.0.load(Ordering::Relaxed) >= MIN_SHORT_CALLS
    }

    /// Records a call that computed for `took`. `idled` is true if it waited for something, such as
    /// a response. Two concurrent calls may count as one.
    ///
    /// A call that waits does not count as short: it continues on the guests' runtime, wherever it
    /// started. If it started elsewhere, it must move while it waits, and the event that it waits
    /// for can wake the runtime before the move is done.
    pub(crate) fn record_call(&self, took: Duration, idled: bool) {
        let previous = self.0.load(Ordering::Relaxed);
        let next = match (took <= MAX_SHORT_CALL, idled) {
            (true, false) => (previous + 1).min(MIN_SHORT_CALLS),
            (true, true) => previous.min(0),
            (false, _) => -LONG_CALL_PENALTY,
        };
        if next != previous {
            self.0.store(next, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plugin_is_quick_after_short_calls_and_not_soon_after_a_long_one() {
        let latency_class = LatencyClass::default();
        let until_quick = |pace: &LatencyClass| {
            (0..=LONG_CALL_PENALTY + MIN_SHORT_CALLS).find(|_| {
                let quick = pace.is_quick();
                pace.record_call(MAX_SHORT_CALL, false);
                quick
            })
        };
        assert_eq!(until_quick(&latency_class), Some(MIN_SHORT_CALLS));
        assert!(latency_class.is_quick());
        latency_class.record_call(MAX_SHORT_CALL + Duration::from_nanos(1), false);
        assert_eq!(
            until_quick(&latency_class),
            Some(LONG_CALL_PENALTY + MIN_SHORT_CALLS)
        );
        latency_class.record_call(MAX_SHORT_CALL, true);
        assert_eq!(
            until_quick(&latency_class),
            Some(MIN_SHORT_CALLS),
            "a short call that waited adds no penalty"
        );
        latency_class.record_call(MAX_SHORT_CALL + Duration::from_nanos(1), true);
        latency_class.record_call(MAX_SHORT_CALL, true);
        assert_eq!(
            until_quick(&latency_class),
            Some(LONG_CALL_PENALTY + MIN_SHORT_CALLS),
            "and does not end the penalty"
        );
    }
}
