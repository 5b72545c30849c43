//! Call statistics over time, in a bounded number of equal time buckets, for charts.

use std::collections::VecDeque;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::call_note::CallNote;

/// Length of a bucket, in seconds.
const BUCKET_SECONDS: u64 = 10;

/// Maximum number of buckets: a quarter of an hour.
pub(crate) const MAX_BUCKETS: usize = 90;

/// Call statistics per time bucket.
#[derive(Clone, Debug, Default)]
pub(crate) struct CallSeries {
    /// The buckets with calls, oldest first.
    buckets: VecDeque<SeriesBucket>,
}

/// Statistics of the calls that ended in one bucket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SeriesBucket {
    /// Number of the bucket since 1970.
    pub(crate) number: u64,
    /// Number of calls that succeeded.
    pub(crate) ok: u64,
    /// Number of calls that failed.
    pub(crate) failed: u64,
    /// Number of calls that were cancelled.
    pub(crate) cancelled: u64,
    /// Total fuel.
    pub(crate) fuel: u64,
    /// Total duration.
    pub(crate) total_duration: Duration,
    /// Maximum duration of a call.
    pub(crate) max_duration: Duration,
    /// Maximum memory of a call, in bytes.
    pub(crate) max_memory: u64,
}

impl SeriesBucket {
    /// Returns the number of calls.
    pub(crate) fn calls(&self) -> u64 {
        self.ok + self.failed + self.cancelled
    }

    /// Returns the mean duration of a call.
    pub(crate) fn mean_duration(&self) -> Duration {
        let calls = u32::try_from(self.calls()).unwrap_or(u32::MAX);
        self.total_duration.checked_div(calls).unwrap_or_default()
    }

    fn add(&mut self, call: &CallNote) {
        if call.is_failure() {
            self.failed += 1;
        } else if call.is_cancelled() {
            self.cancelled += 1;
        } else {
            self.ok += 1;
        }
        let usage = call.usage.unwrap_or_default();
        self.fuel = self.fuel.saturating_add(usage.fuel);
        self.total_duration = self.total_duration.saturating_add(call.duration);
        self.max_duration = self.max_duration.max(call.duration);
        self.max_memory = self.max_memory.max(usage.memory);
    }
}

impl CallSeries {
    /// Adds a call. Ignores a call before the oldest bucket, which can occur when the clock is set.
    pub(crate) fn add(&mut self, call: &CallNote) {
        let number = bucket_number(call.at);
        let index = self
            .buckets
            .partition_point(|bucket| bucket.number < number);
        if self
            .buckets
            .get(index)
            .is_none_or(|bucket| bucket.number != number)
        {
            if self.buckets.len() >= MAX_BUCKETS && index == 0 {
                return;
            }
            self.buckets.insert(
                index,
                SeriesBucket {
                    number,
                    ..SeriesBucket::default()
                },
            );
        }
        if let Some(bucket) = self.buckets.get_mut(index) {
            bucket.add(call);
        }
        while self.buckets.len() > MAX_BUCKETS {
            self.buckets.pop_front();
        }
    }

    /// Returns all buckets until `now`, including empty ones, oldest first.
    pub(crate) fn buckets_until(&self, now: SystemTime) -> Vec<SeriesBucket> {
        let last = bucket_number(now);
        let first = last.saturating_sub(MAX_BUCKETS as u64 - 1);
        let find_bucket = |number| {
            let at = self
                .buckets
                .binary_search_by_key(&number, |bucket| bucket.number)
                .ok()?;
            self.buckets.get(at).copied()
        };
        (first..=last)
            .map(|number| {
                find_bucket(number).unwrap_or(SeriesBucket {
                    number,
                    ..SeriesBucket::default()
                })
            })
            .collect()
    }
}

fn bucket_number(at: SystemTime) -> u64 {
    at.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs() / BUCKET_SECONDS
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call_note::tests::note;

    fn at(seconds: u64, outcome: &'static str) -> CallNote {
        CallNote {
            at: UNIX_EPOCH + Duration::from_secs(seconds),
            ..note("t", outcome)
        }
    }

    #[test]
    fn calls_are_summed_per_bucket_and_empty_buckets_are_included() {
        let mut series = CallSeries::default();
        for call in [
            at(10_000, "ok"),
            at(10_009, "fuel"),
            at(10_030, "input-required"),
            at(10_025, "ok"),
        ] {
            series.add(&call);
        }
        let steps = series.buckets_until(UNIX_EPOCH + Duration::from_secs(10_039));
        let counted: Vec<_> = steps
            .iter()
            .rev()
            .take(5)
            .map(|step| (step.ok, step.failed))
            .collect();
        assert_eq!(
            (steps.len(), counted),
            (MAX_BUCKETS, vec![(1, 0), (1, 0), (0, 0), (1, 1), (0, 0)])
        );
        let first = steps[MAX_BUCKETS - 4];
        assert_eq!(
            (first.fuel, first.mean_duration(), first.max_memory),
            (2_000, Duration::from_millis(12), 1 << 20)
        );
        assert_eq!(first.number * BUCKET_SECONDS, 10_000);
        assert!(
            series
                .buckets_until(UNIX_EPOCH)
                .iter()
                .all(|step| step.calls() == 0),
            "the clock was set back"
        );
    }

    #[test]
    fn number_of_buckets_is_bounded() {
        let mut series = CallSeries::default();
        for step in 0..1_000 {
            series.add(&at(step * BUCKET_SECONDS, "ok"));
        }
        series.add(&at(0, "ok"));
        assert_eq!(series.buckets.len(), MAX_BUCKETS);
        assert_eq!(
            series
                .buckets_until(UNIX_EPOCH + Duration::from_secs(999 * BUCKET_SECONDS))
                .iter()
                .map(SeriesBucket::calls)
                .sum::<u64>(),
            90
        );
    }
}
