//! Suspension of a plugin: the operator can suspend it, and resume it for callers for which it is
//! disabled.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};

/// Maximum number of listed callers for which the plugin is disabled. Beyond it, the oldest is
/// dropped.
const MAX_DISABLED_CALLERS: usize = 100;

/// Suspension state of one loaded version of a plugin.
#[derive(Debug, Default)]
pub(crate) struct PluginSuspension {
    suspended: AtomicBool,
    /// Number of times that it was resumed.
    resumptions: AtomicU64,
    /// Callers for which it was disabled since it was last resumed, and the end of that.
    callers: Mutex<VecDeque<(String, Instant)>>,
}

impl PluginSuspension {
    /// Returns whether the plugin rejects all calls.
    pub(crate) fn is_suspended(&self) -> bool {
        self.suspended.load(Ordering::Relaxed)
    }

    /// Returns how often the plugin was resumed. Crashes before the last time do not count.
    pub(crate) fn resume_count(&self) -> u64 {
        self.resumptions.load(Ordering::Relaxed)
    }

    /// Suspends the plugin, or resumes it for all callers.
    pub(crate) fn set_suspended(&self, suspended: bool) {
        self.suspended.store(suspended, Ordering::Relaxed);
        if !suspended {
            self.resumptions.fetch_add(1, Ordering::Relaxed);
            self.lock_callers().clear();
        }
    }

    /// Records that the plugin is disabled for a caller.
    pub(crate) fn record_disabled(&self, caller: &str, duration: Duration) {
        let mut callers = self.lock_callers();
        callers.retain(|(known, _)| known != caller);
        if callers.len() >= MAX_DISABLED_CALLERS {
            callers.pop_front();
        }
        callers.push_back((caller.to_owned(), Instant::now() + duration));
    }

    /// Returns the callers for which the plugin is disabled, and the remaining times.
    pub(crate) fn disabled_callers(&self) -> Vec<(String, Duration)> {
        let now = Instant::now();
        let with_remaining_time = |(caller, until): &(String, Instant)| {
            let remaining = until.saturating_duration_since(now);
            (!remaining.is_zero()).then(|| (caller.clone(), remaining))
        };
        self.lock_callers()
            .iter()
            .filter_map(with_remaining_time)
            .collect()
    }

    // Held for a few comparisons and never across an await.
    fn lock_callers(&self) -> MutexGuard<'_, VecDeque<(String, Instant)>> {
        self.callers.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disabled_callers_are_listed_until_the_plugin_is_resumed_or_time_passes() {
        let suspension = PluginSuspension::default();
        suspension.record_disabled("ada", Duration::ZERO);
        suspension.record_disabled("bob", Duration::from_mins(1));
        suspension.record_disabled("bob", Duration::from_mins(1));
        assert_eq!(
            suspension
                .disabled_callers()
                .into_iter()
                .map(|(caller, _)| caller)
                .collect::<Vec<_>>(),
            ["bob"]
        );
        suspension.set_suspended(true);
        assert!(
            suspension.is_suspended()
                && suspension.resume_count() == 0
                && suspension.disabled_callers().len() == 1
        );
        suspension.set_suspended(false);
        assert!(
            !suspension.is_suspended()
                && suspension.resume_count() == 1
                && suspension.disabled_callers().is_empty()
        );
        for number in 0..1_000 {
            suspension.record_disabled(&number.to_string(), Duration::from_mins(1));
        }
        assert_eq!(suspension.disabled_callers().len(), MAX_DISABLED_CALLERS);
    }
}
