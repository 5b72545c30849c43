//! Collects durations and computes percentiles.

use std::time::Duration;

use anyhow::{Context, Result};
use hdrhistogram::Histogram;

/// Maximum duration that is recorded exactly. A longer one is recorded as this duration.
const MAX_RECORDED_LATENCY: Duration = Duration::from_hours(1);

/// A histogram of durations in microseconds, with three significant digits.
#[derive(Clone, Debug)]
pub struct LatencyHistogram(Histogram<u64>);

impl LatencyHistogram {
    /// Creates an empty histogram.
    pub fn new() -> Result<Self> {
        Histogram::new_with_max(microseconds(MAX_RECORDED_LATENCY), 3)
            .map(Self)
            .context("failed to make a histogram")
    }

    /// Adds a duration.
    pub fn add(&mut self, duration: Duration) {
        self.0.saturating_record(microseconds(duration));
    }

    /// Returns whether the histogram is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the number of recorded durations.
    pub fn len(&self) -> u64 {
        self.0.len()
    }

    /// Returns the duration at the given percentile, from 0 to 100.
    pub fn percentile(&self, percentile: f64) -> Duration {
        Duration::from_micros(self.0.value_at_percentile(percentile))
    }

    /// Returns the median.
    pub fn median(&self) -> Duration {
        self.percentile(50.0)
    }

    /// Returns the maximum.
    pub fn max(&self) -> Duration {
        Duration::from_micros(self.0.max())
    }
}

impl Extend<Duration> for LatencyHistogram {
    fn extend<T: IntoIterator<Item = Duration>>(&mut self, durations: T) {
        durations
            .into_iter()
            .for_each(|duration| self.add(duration));
    }
}

fn microseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_those_of_the_added_durations() {
        let mut some = LatencyHistogram::new().unwrap();
        (1..=100).for_each(|ms| some.add(Duration::from_millis(ms)));
        let about = |duration: Duration, ms: u128| {
            assert!(duration.as_millis().abs_diff(ms) <= 1, "{duration:?}");
        };
        about(some.median(), 50);
        about(some.percentile(99.0), 99);
        about(some.max(), 100);
        assert_eq!(some.len(), 100);
    }
}
