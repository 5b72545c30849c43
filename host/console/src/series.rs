//! Call statistics over time, in a bounded number of equal time buckets, for charts.

use std::collections::VecDeque;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::calls::CallNote;

/// Length of a bucket, in seconds.
const STEP: u64 = 10;

/// Maximum number of buckets: a quarter of an hour.
pub(crate) const STEPS: usize = 90;

/// Call statistics per time bucket.
#[derive(Clone, Debug, Default)]
pub(crate) struct CallSeries {
    /// The buckets with calls, oldest first.
    steps: VecDeque<SeriesBucket>,
}

/// Statistics of the calls that ended in one bucket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SeriesBucket {
    /// Number of the bucket since 1970.
    pub(crate) number: u64,
    /// Number of calls that did not fail.
    pub(crate) ok: u64,
    /// Number of calls that failed.
    pub(crate) failed: u64,
    /// Total fuel.
    pub(crate) fuel: u64,
    /// Total duration.
    pub(crate) took: Duration,
    /// Maximum duration of a call.
    pub(crate) longest: Duration,
    /// Maximum memory of a call, in bytes.
    pub(crate) memory: u64,
}

impl SeriesBucket {
    /// Returns the number of calls.
    pub(crate) fn calls(&self) -> u64 {
        self.ok + self.failed
    }

    /// Returns the mean duration of a call.
    pub(crate) fn mean(&self) -> Duration {
        let calls = u32::try_from(self.calls()).unwrap_or(u32::MAX);
        self.took.checked_div(calls).unwrap_or_default()
    }

    fn add(&mut self, call: &CallNote) {
        if call.failed() {
            self.failed += 1;
        } else {
            self.ok += 1;
        }
        let usage = call.usage.unwrap_or_default();
        self.fuel = self.fuel.saturating_add(usage.fuel);
        self.took = self.took.saturating_add(call.took);
        self.longest = self.longest.max(call.took);
        self.memory = self.memory.max(usage.memory);
    }
}

impl CallSeries {
    /// Adds a call. Ignores a call before the oldest bucket, which can occur when the clock is set.
    pub(crate) fn add(&mut self, call: &CallNote) {
        let number = number(call.at);
        let at = self.steps.partition_point(|step| step.number < number);
        if self.steps.get(at).is_none_or(|step| step.number != number) {
            if self.steps.len() >= STEPS && at == 0 {
                return;
            }
            self.steps.insert(at, SeriesBucket { number, ..SeriesBucket::default() });
        }
        if let Some(step) = self.steps.get_mut(at) {
            step.add(call);
        }
        while self.steps.len() > STEPS {
            self.steps.pop_front();
        }
    }

    /// Returns all buckets until `now`, including empty ones, oldest first.
    pub(crate) fn until(&self, now: SystemTime) -> Vec<SeriesBucket> {
        let last = number(now);
        let first = last.saturating_sub(STEPS as u64 - 1);
        let found = |number| {
            let at = self.steps.binary_search_by_key(&number, |step| step.number).ok()?;
            self.steps.get(at).copied()
        };
        (first..=last)
            .map(|number| found(number).unwrap_or(SeriesBucket { number, ..SeriesBucket::default() }))
            .collect()
    }
}

fn number(at: SystemTime) -> u64 {
    at.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs() / STEP
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calls::tests::note;

    fn at(seconds: u64, outcome: &'static str) -> CallNote {
        CallNote { at: UNIX_EPOCH + Duration::from_secs(seconds), ..note("t", outcome) }
    }

    #[test]
    fn calls_add_up_in_their_steps_and_quiet_times_are_there() {
        let mut series = CallSeries::default();
        for call in [at(10_000, "ok"), at(10_009, "fuel"), at(10_030, "asked"), at(10_025, "ok")] {
            series.add(&call);
        }
        let steps = series.until(UNIX_EPOCH + Duration::from_secs(10_039));
        let counted: Vec<_> = steps.iter().rev().take(5).map(|step| (step.ok, step.failed)).collect();
        assert_eq!((steps.len(), counted), (STEPS, vec![(1, 0), (1, 0), (0, 0), (1, 1), (0, 0)]));
        let first = steps[STEPS - 4];
        assert_eq!((first.fuel, first.mean(), first.memory), (2_000, Duration::from_millis(12), 1 << 20));
        assert_eq!(first.number * STEP, 10_000);
        assert!(series.until(UNIX_EPOCH).iter().all(|step| step.calls() == 0), "the clock was set back");
    }

    #[test]
    fn only_so_many_steps_are_kept() {
        let mut series = CallSeries::default();
        for step in 0..1_000 {
            series.add(&at(step * STEP, "ok"));
        }
        series.add(&at(0, "ok"));
        assert_eq!(series.steps.len(), STEPS);
        assert_eq!(
            series.until(UNIX_EPOCH + Duration::from_secs(999 * STEP)).iter().map(SeriesBucket::calls).sum::<u64>(),
            90
        );
    }
}
