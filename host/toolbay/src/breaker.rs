//! The circuit breaker: a plugin that crashes call after call rests for a while.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::Deserialize;
use toolbay_model::setting::{any, positive};

/// When a plugin rests, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct BreakerRules {
    /// Crashes in a row after which it rests; 0 never lets it.
    #[serde(deserialize_with = "any")]
    pub crashes: u32,
    /// How long it rests.
    #[serde(deserialize_with = "positive")]
    pub rest: Duration,
}

impl Default for BreakerRules {
    fn default() -> Self {
        Self { crashes: 10, rest: Duration::from_secs(30) }
    }
}

/// What the calls of one plugin came to lately. A reloaded plugin has a new one.
#[derive(Debug, Default)]
pub(crate) struct Breaker {
    streak: Mutex<Streak>,
}

#[derive(Debug, Default)]
struct Streak {
    /// Crashes since the last call that did not crash.
    crashes: u32,
    until: Option<Instant>,
}

impl Breaker {
    /// Whether a call may be tried now.
    ///
    /// # Errors
    ///
    /// The plugin rests; the value is for how long yet.
    pub(crate) fn check(&self) -> Result<(), Duration> {
        self.with(|state| match state.until.map(|until| until.saturating_duration_since(Instant::now())) {
            Some(rest) if !rest.is_zero() => Err(rest),
            _ => Ok(()),
        })
    }

    /// Notes how a call ended. True when the plugin is to rest from now on:
    /// after so many crashes in a row, or after the first one since a rest.
    pub(crate) fn note(&self, crashed: bool, rules: BreakerRules) -> bool {
        self.with(|state| {
            if !crashed {
                *state = Streak::default();
                return false;
            }
            state.crashes = state.crashes.saturating_add(1);
            let rests = rules.crashes > 0 && state.crashes >= rules.crashes;
            if rests {
                state.until = Some(Instant::now() + rules.rest);
            }
            rests
        })
    }

    fn with<T>(&self, work: impl FnOnce(&mut Streak) -> T) -> T {
        work(&mut self.streak.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: BreakerRules = BreakerRules { crashes: 3, rest: Duration::from_mins(1) };

    #[test]
    fn crashes_in_a_row_and_only_those_lead_to_a_rest() {
        let breaker = Breaker::default();
        let crashes = [true, true, false, true, true];
        assert!(crashes.iter().all(|crashed| !breaker.note(*crashed, RULES)));
        breaker.check().unwrap();
        assert!(breaker.note(true, RULES));
        assert!(breaker.check().unwrap_err() > Duration::from_secs(50));
    }

    #[test]
    fn after_a_rest_one_crash_is_enough_and_one_success_mends_it() {
        let breaker = Breaker::default();
        let short = BreakerRules { rest: Duration::ZERO, ..RULES };
        for _ in 0..3 {
            breaker.note(true, short);
        }
        breaker.check().unwrap();
        assert!(breaker.note(true, RULES));
        breaker.check().unwrap_err();
        breaker.note(false, RULES);
        breaker.check().unwrap();
        assert!(!breaker.note(true, RULES));
    }

    #[test]
    fn it_can_be_switched_off() {
        let breaker = Breaker::default();
        assert!((0..100).all(|_| !breaker.note(true, BreakerRules { crashes: 0, ..RULES })));
    }
}
