//! Durations that are collected, and what is said of them.

use std::time::Duration;

use anyhow::{Context, Result};
use hdrhistogram::Histogram;

/// The longest that is told from others.
const LONGEST: Duration = Duration::from_hours(1);

/// Durations by the microsecond, exact to three digits.
#[derive(Clone, Debug)]
pub struct Latencies(Histogram<u64>);

impl Latencies {
    /// None yet.
    pub fn new() -> Result<Self> {
        Histogram::new_with_max(microseconds(LONGEST), 3).map(Self).context("failed to make a histogram")
    }

    /// Adds one.
    pub fn add(&mut self, duration: Duration) {
        self.0.saturating_record(microseconds(duration));
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many there are.
    pub fn len(&self) -> u64 {
        self.0.len()
    }

    /// What this many of a hundred do not go beyond.
    pub fn percentile(&self, percentile: f64) -> Duration {
        Duration::from_micros(self.0.value_at_percentile(percentile))
    }

    /// The median.
    pub fn median(&self) -> Duration {
        self.percentile(50.0)
    }

    /// The longest.
    pub fn max(&self) -> Duration {
        Duration::from_micros(self.0.max())
    }
}

fn microseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_what_was_added() {
        let mut some = Latencies::new().unwrap();
        (1..=100).for_each(|ms| some.add(Duration::from_millis(ms)));
        let about = |duration: Duration, ms: u128| assert!(duration.as_millis().abs_diff(ms) <= 1, "{duration:?}");
        about(some.median(), 50);
        about(some.percentile(99.0), 99);
        about(some.max(), 100);
        assert_eq!(some.len(), 100);
    }
}
