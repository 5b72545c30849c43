//! Whether the calls of a plugin are short and never wait: such a call may begin on the thread that received it.

use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

/// How long a short call computes at most, from the moment its plugin is found until its result is checked: it may delay
/// the protocol that long.
const SHORT: Duration = Duration::from_micros(250);

/// So many short calls in a row make a plugin quick.
const QUICK: i32 = 8;

/// So many more it takes after a call that was not short. A plugin can delay the protocol with one call in so many.
const DOUBT: i32 = 64;

/// How many calls in a row were short, less what is in doubt.
#[derive(Debug, Default)]
pub(crate) struct LatencyClass(AtomicI32);

impl LatencyClass {
    /// Whether the next call is probably short.
    pub(crate) fn is_quick(&self) -> bool {
        self.0.load(Ordering::Relaxed) >= QUICK
    }

    /// Takes note of a call that computed for so long, and may have waited for something, such as a response. Two at the
    /// same time may count as one.
    ///
    /// A call that waits goes on on the guests' runtime, whoever began it. Had it begun elsewhere, it would have to move
    /// while it waits: what it waits for wakes the runtime before it is there.
    pub(crate) fn note(&self, took: Duration, idled: bool) {
        let known = self.0.load(Ordering::Relaxed);
        let now = match (took <= SHORT, idled) {
            (true, false) => (known + 1).min(QUICK),
            (true, true) => known.min(0),
            (false, _) => -DOUBT,
        };
        if now != known {
            self.0.store(now, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plugin_is_quick_after_short_calls_and_for_long_not_after_another() {
        let pace = LatencyClass::default();
        let until_quick = |pace: &LatencyClass| {
            (0..=DOUBT + QUICK).find(|_| {
                let quick = pace.is_quick();
                pace.note(SHORT, false);
                quick
            })
        };
        assert_eq!(until_quick(&pace), Some(QUICK));
        assert!(pace.is_quick());
        pace.note(SHORT + Duration::from_nanos(1), false);
        assert_eq!(until_quick(&pace), Some(DOUBT + QUICK));
        pace.note(SHORT, true);
        assert_eq!(until_quick(&pace), Some(QUICK), "a call that waits is no reason for doubt");
        pace.note(SHORT + Duration::from_nanos(1), true);
        pace.note(SHORT, true);
        assert_eq!(until_quick(&pace), Some(DOUBT + QUICK), "and does not end it");
    }
}
