//! Call statistics over time, in a bounded number of equal time buckets, for charts.

use std::collections::VecDeque;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::call_note::CallNote;

/// Call statistics per time bucket.
#[derive(Clone, Debug)]
pub(crate) struct CallSeries {
    /// Length of a bucket, in seconds.
    pub(crate) bucket_seconds: u64,
    /// Maximum number of buckets.
    max_buckets: usize,
    /// The buckets with calls, oldest first.
    buckets: VecDeque<SeriesBucket>,
}

/// Statistics of the calls that ended in one bucket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
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
        self.ok
            .saturating_add(self.failed)
            .saturating_add(self.cancelled)
    }

    /// Returns the mean duration of a call.
    pub(crate) fn mean_duration(&self) -> Duration {
        let calls = u32::try_from(self.calls()).unwrap_or(u32::MAX);
        self.total_duration.checked_div(calls).unwrap_or_default()
    }

    /// Adds the calls of another bucket.
    fn add(&mut self, other: &Self) {
        self.ok = self.ok.saturating_add(other.ok);
        self.failed = self.failed.saturating_add(other.failed);
        self.cancelled = self.cancelled.saturating_add(other.cancelled);
        self.fuel = self.fuel.saturating_add(other.fuel);
        self.total_duration = self.total_duration.saturating_add(other.total_duration);
        self.max_duration = self.max_duration.max(other.max_duration);
        self.max_memory = self.max_memory.max(other.max_memory);
    }
}

impl CallSeries {
    /// Creates an empty series.
    pub(crate) const fn new(bucket_seconds: u64, max_buckets: usize) -> Self {
        Self {
            bucket_seconds,
            max_buckets,
            buckets: VecDeque::new(),
        }
    }

    /// Adds a call. Ignores a call before the oldest bucket, which can occur when the clock is set.
    pub(crate) fn add(&mut self, call: &CallNote) {
        let (is_failure, is_cancelled) = (call.is_failure(), call.is_cancelled());
        let usage = call.usage.unwrap_or_default();
        self.merge(&SeriesBucket {
            number: self.bucket_number(call.at),
            ok: u64::from(!is_failure && !is_cancelled),
            failed: u64::from(is_failure),
            cancelled: u64::from(is_cancelled && !is_failure),
            fuel: usage.fuel,
            total_duration: call.duration,
            max_duration: call.duration,
            max_memory: usage.memory,
        });
    }

    /// Adds the calls of a bucket. Ignores a bucket before the oldest one.
    pub(crate) fn merge(&mut self, added: &SeriesBucket) {
        let number = added.number;
        let index = self
            .buckets
            .partition_point(|bucket| bucket.number < number);
        if self
            .buckets
            .get(index)
            .is_none_or(|bucket| bucket.number != number)
        {
            if self.buckets.len() >= self.max_buckets && index == 0 {
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
            bucket.add(added);
        }
        while self.buckets.len() > self.max_buckets {
            self.buckets.pop_front();
        }
    }

    /// Returns the buckets with calls, oldest first.
    pub(crate) fn buckets(&self) -> impl Iterator<Item = &SeriesBucket> {
        self.buckets.iter()
    }

    /// Returns `count` bars until `now`, oldest first, also those without calls. A bar is the sum of
    /// `buckets_per_bar` buckets, and its number is that of its first bucket.
    pub(crate) fn bars_until(
        &self,
        now: SystemTime,
        count: u64,
        buckets_per_bar: u64,
    ) -> Vec<SeriesBucket> {
        // Bars begin at multiples of their length, so that a bar does not change when time passes.
        let last_bar = self.bucket_number(now) / buckets_per_bar;
        let first_bar = (last_bar + 1).saturating_sub(count);
        let mut bars: Vec<SeriesBucket> = (first_bar..=last_bar)
            .map(|bar| SeriesBucket {
                number: bar * buckets_per_bar,
                ..SeriesBucket::default()
            })
            .collect();
        for bucket in &self.buckets {
            let bar = bucket.number / buckets_per_bar;
            let index = bar
                .checked_sub(first_bar)
                .and_then(|index| usize::try_from(index).ok());
            if let Some(bar) = index.and_then(|index| bars.get_mut(index)) {
                bar.add(bucket);
            }
        }
        bars
    }

    /// Returns the number of the bucket at this time.
    pub(crate) fn bucket_number(&self, at: SystemTime) -> u64 {
        at.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs() / self.bucket_seconds.max(1)
    }
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

    fn series(calls: impl IntoIterator<Item = CallNote>) -> CallSeries {
        let mut series = CallSeries::new(10, 90);
        for call in calls {
            series.add(&call);
        }
        series
    }

    #[test]
    fn calls_are_summed_per_bar_and_empty_bars_are_included() {
        let series = series([
            at(10_000, "ok"),
            at(10_009, "fuel"),
            at(10_030, "input-required"),
            at(10_025, "ok"),
        ]);
        let now = UNIX_EPOCH + Duration::from_secs(10_039);
        let count = |bars: &[SeriesBucket]| -> Vec<_> {
            bars.iter().rev().map(|bar| (bar.ok, bar.failed)).collect()
        };
        let bars = series.bars_until(now, 5, 1);
        assert_eq!(count(&bars), [(1, 0), (1, 0), (0, 0), (1, 1), (0, 0)]);
        assert_eq!(
            (bars[1].fuel, bars[1].mean_duration(), bars[1].max_memory),
            (2_000, Duration::from_millis(12), 1 << 20)
        );
        assert_eq!(bars[1].number * series.bucket_seconds, 10_000);
        // Bars of 20 s, at multiples of 20 s.
        let bars = series.bars_until(now, 3, 2);
        assert_eq!(count(&bars), [(2, 0), (1, 1), (0, 0)]);
        assert_eq!(bars[2].number * series.bucket_seconds, 10_020);
        let set_back = series.bars_until(UNIX_EPOCH, 90, 1);
        assert!(set_back.iter().all(|bar| bar.calls() == 0), "{set_back:?}");
    }

    #[test]
    fn number_of_buckets_is_bounded() {
        let mut series = series((0..1_000).map(|step| at(step * 10, "ok")));
        series.add(&at(0, "ok"));
        assert_eq!(series.buckets.len(), 90);
        let now = UNIX_EPOCH + Duration::from_secs(999 * 10);
        let bars = series.bars_until(now, 90, 1);
        let calls: u64 = bars.iter().map(SeriesBucket::calls).sum();
        assert_eq!(calls, 90);
    }
}
