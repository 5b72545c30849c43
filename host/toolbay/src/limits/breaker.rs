//! Circuit breaker: disables a plugin for a caller temporarily after repeated crashes.

use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde::Deserialize;
use toolbay_model::setting::{any, positive};

/// Rules for disabling a plugin after repeated crashes (`[circuit_breaker]`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct BreakerRules {
    /// Consecutive crashes in calls of one caller after which the plugin is disabled for that
    /// caller; 0 never disables it. Default: 10.
    #[serde(deserialize_with = "any")]
    pub crashes: u32,
    /// Duration for which it is disabled, above 0. Default: 30 s.
    #[serde(deserialize_with = "positive")]
    pub disable_duration: Duration,
}

impl Default for BreakerRules {
    fn default() -> Self {
        Self {
            crashes: 10,
            disable_duration: Duration::from_secs(30),
        }
    }
}

/// Circuit breaker of one caller and one loaded plugin. A reloaded plugin starts with a new one.
#[derive(Debug, Default)]
pub(crate) struct CircuitBreaker {
    streak: Mutex<CrashStreak>,
}

#[derive(Debug, Default)]
struct CrashStreak {
    /// Crashes since the last call that did not crash.
    crashes: u32,
    disabled_until: Option<Instant>,
    /// Number of times that the operator had enabled the plugin at the last check.
    resume_count: u64,
}

impl CircuitBreaker {
    /// Checks whether calls are allowed now. `resume_count` is the number of times that the
    /// operator has enabled the plugin. Crashes before the last time do not count.
    ///
    /// # Errors
    ///
    /// The plugin is disabled. The value is the remaining time.
    pub(crate) fn check(&self, resume_count: u64) -> Result<(), Duration> {
        self.with_streak(|state| {
            if state.resume_count != resume_count {
                *state = CrashStreak {
                    resume_count,
                    ..CrashStreak::default()
                };
            }
            match state
                .disabled_until
                .map(|until| until.saturating_duration_since(Instant::now()))
            {
                Some(left) if !left.is_zero() => Err(left),
                _ => Ok(()),
            }
        })
    }

    /// Records how a call of the caller ended. Returns whether this disables the plugin for the
    /// caller: after `rules.crashes` consecutive crashes, or after the first crash once a disable
    /// duration has passed.
    pub(crate) fn record_outcome(&self, crashed: bool, rules: BreakerRules) -> bool {
        self.with_streak(|state| {
            if !crashed {
                *state = CrashStreak {
                    resume_count: state.resume_count,
                    ..CrashStreak::default()
                };
                return false;
            }
            state.crashes = state.crashes.saturating_add(1);
            let disabled = rules.crashes > 0 && state.crashes >= rules.crashes;
            if disabled {
                state.disabled_until = Some(Instant::now() + rules.disable_duration);
            }
            disabled
        })
    }

    fn with_streak<T>(&self, work: impl FnOnce(&mut CrashStreak) -> T) -> T {
        work(&mut self.streak.lock())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: BreakerRules = BreakerRules {
        crashes: 3,
        disable_duration: Duration::from_mins(1),
    };

    #[test]
    fn only_consecutive_crashes_disable_a_plugin() {
        let breaker = CircuitBreaker::default();
        let crashes = [true, true, false, true, true];
        assert!(
            crashes
                .iter()
                .all(|crashed| !breaker.record_outcome(*crashed, RULES))
        );
        breaker.check(0).unwrap();
        assert!(breaker.record_outcome(true, RULES));
        assert!(breaker.check(0).unwrap_err() > Duration::from_secs(50));
    }

    #[test]
    fn after_the_disable_duration_one_crash_disables_and_one_success_resets() {
        let breaker = CircuitBreaker::default();
        let short = BreakerRules {
            disable_duration: Duration::ZERO,
            ..RULES
        };
        for _ in 0..3 {
            breaker.record_outcome(true, short);
        }
        breaker.check(0).unwrap();
        assert!(breaker.record_outcome(true, RULES));
        breaker.check(0).unwrap_err();
        breaker.record_outcome(false, RULES);
        breaker.check(0).unwrap();
        assert!(!breaker.record_outcome(true, RULES));
    }

    #[test]
    fn enabling_the_plugin_resets_its_crashes() {
        let breaker = CircuitBreaker::default();
        assert_eq!(
            [true; 3].map(|crashed| breaker.record_outcome(crashed, RULES)),
            [false, false, true]
        );
        breaker.check(0).unwrap_err();
        breaker.check(1).unwrap();
        assert_eq!(
            [true; 3].map(|crashed| breaker.record_outcome(crashed, RULES)),
            [false, false, true]
        );
        breaker.check(1).unwrap_err();
    }

    #[test]
    fn zero_crashes_turn_the_breaker_off() {
        let breaker = CircuitBreaker::default();
        assert!((0..100).all(|_| !breaker.record_outcome(
            true,
            BreakerRules {
                crashes: 0,
                ..RULES
            }
        )));
    }
}
