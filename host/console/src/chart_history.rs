//! Call statistics over 15 minutes to 7 days, for charts.

use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use crate::call_note::CallNote;
use crate::call_series::{CallSeries, SeriesBucket};

/// Length and number of the buckets of each series: 15 minutes, 6 hours and 7 days.
const SERIES: [(u64, usize); 3] = [(10, 90), (60, 360), (900, 672)];

/// Version of the stored form.
const STORED_VERSION: u32 = 1;

/// Time by which the clock of an earlier run may have been ahead.
const MAX_CLOCK_DIFFERENCE: Duration = Duration::from_hours(1);

/// Call statistics over time, in three resolutions.
#[derive(Clone, Debug)]
pub(crate) struct ChartHistory {
    series: [CallSeries; SERIES.len()],
}

/// The time that charts show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ChartRange {
    /// The last 15 minutes.
    #[default]
    QuarterHour,
    /// The last hour.
    Hour,
    /// The last 6 hours.
    SixHours,
    /// The last day.
    Day,
    /// The last 7 days.
    Week,
}

/// The bars of a chart.
#[derive(Clone, Debug)]
pub(crate) struct ChartBars {
    /// The bars, oldest first.
    pub(crate) bars: Vec<SeriesBucket>,
    /// Length of a bucket, in which the bars are numbered.
    bucket_length: Duration,
    /// Length of a bar.
    pub(crate) bar_length: Duration,
}

impl ChartRange {
    /// Every range, with its value in a query and its label.
    pub(crate) const ALL: [(Self, &'static str, &'static str); 5] = [
        (Self::QuarterHour, "15m", "15 minutes"),
        (Self::Hour, "1h", "hour"),
        (Self::SixHours, "6h", "6 hours"),
        (Self::Day, "24h", "24 hours"),
        (Self::Week, "7d", "7 days"),
    ];

    /// Parses the value in a query.
    pub(crate) fn parse(value: &str) -> Self {
        let range = Self::ALL.iter().find(|(_, known, _)| *known == value);
        range.map(|(range, ..)| *range).unwrap_or_default()
    }

    /// Returns the label.
    pub(crate) fn label(self) -> &'static str {
        let range = Self::ALL.iter().find(|(range, ..)| *range == self);
        range.map(|(.., label)| *label).unwrap_or_default()
    }

    /// Returns the index of its series, the number of bars, and the number of buckets in a bar.
    const fn shape(self) -> (usize, u64, u64) {
        match self {
            Self::QuarterHour => (0, 90, 1),
            Self::Hour => (1, 60, 1),
            Self::SixHours => (1, 90, 4),
            Self::Day => (2, 96, 1),
            Self::Week => (2, 84, 8),
        }
    }
}

impl ChartBars {
    /// Returns the time at which a bar begins.
    pub(crate) fn start_of(&self, bar: &SeriesBucket) -> SystemTime {
        let seconds = bar.number.saturating_mul(self.bucket_length.as_secs());
        SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
    }
}

impl Default for ChartHistory {
    fn default() -> Self {
        Self {
            series: SERIES.map(|(seconds, buckets)| CallSeries::new(seconds, buckets)),
        }
    }
}

/// The stored form of a history.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct StoredHistory {
    version: u32,
    series: Vec<StoredSeries>,
}

/// The stored form of a series.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct StoredSeries {
    bucket_seconds: u64,
    buckets: Vec<SeriesBucket>,
}

impl ChartHistory {
    /// Adds a call.
    pub(crate) fn add(&mut self, call: &CallNote) {
        for series in &mut self.series {
            series.add(call);
        }
    }

    /// Adds the calls of another history.
    pub(crate) fn merge(&mut self, other: &Self) {
        for (series, added) in self.series.iter_mut().zip(&other.series) {
            for bucket in added.buckets() {
                series.merge(bucket);
            }
        }
    }

    /// Returns the bars of a chart that ends `now`.
    pub(crate) fn bars(&self, range: ChartRange, now: SystemTime) -> ChartBars {
        let (index, count, per_bar) = range.shape();
        let series = self.series.get(index);
        let seconds = series.map_or(1, |series| series.bucket_seconds);
        ChartBars {
            bars: series
                .map(|series| series.bars_until(now, count, per_bar))
                .unwrap_or_default(),
            bucket_length: Duration::from_secs(seconds),
            bar_length: Duration::from_secs(seconds * per_bar),
        }
    }

    /// Returns the stored form.
    pub(crate) fn to_json(&self) -> String {
        let series = |series: &CallSeries| StoredSeries {
            bucket_seconds: series.bucket_seconds,
            buckets: series.buckets().copied().collect(),
        };
        let stored = StoredHistory {
            version: STORED_VERSION,
            series: self.series.iter().map(series).collect(),
        };
        // Numbers can always be written.
        serde_json::to_string(&stored).unwrap_or_default()
    }

    /// Reads the stored form, and omits buckets that are no longer shown.
    ///
    /// # Errors
    ///
    /// Returns the reason if the text is not a stored history.
    pub(crate) fn from_json(text: &str, now: SystemTime) -> Result<Self, String> {
        let stored: StoredHistory =
            serde_json::from_str(text).map_err(|error| format!("it is damaged: {error}"))?;
        if stored.version != STORED_VERSION {
            return Err("another version of Toolbay wrote it".to_owned());
        }
        let mut history = Self::default();
        for stored in stored.series {
            let series = history
                .series
                .iter_mut()
                .find(|series| series.bucket_seconds == stored.bucket_seconds)
                .ok_or("it is damaged: it has an unknown series")?;
            let last = series.bucket_number(now + MAX_CLOCK_DIFFERENCE);
            // A bucket of the future would evict those of the present.
            for bucket in stored.buckets.iter().filter(|bucket| bucket.number <= last) {
                series.merge(bucket);
            }
        }
        Ok(history)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call_note::tests::note;

    fn now() -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_hours(500_000)
    }

    fn history(ages: impl IntoIterator<Item = u64>) -> ChartHistory {
        let mut history = ChartHistory::default();
        for age in ages {
            history.add(&CallNote {
                at: now() - Duration::from_secs(age),
                ..note("t", if age % 2 == 0 { "ok" } else { "fuel" })
            });
        }
        history
    }

    fn calls(history: &ChartHistory) -> Vec<u64> {
        let count = |range| {
            let chart = history.bars(range, now());
            chart.bars.iter().map(SeriesBucket::calls).sum()
        };
        ChartRange::ALL.map(|(range, ..)| count(range)).to_vec()
    }

    #[test]
    fn each_range_shows_the_calls_of_its_time() {
        let hour = 3_600;
        let ages = [1, 600, 1_800, 3 * hour, 20 * hour, 6 * 24 * hour];
        let recorded = history(ages.into_iter().rev());
        assert_eq!(calls(&recorded), [2, 3, 4, 5, 6]);
        for (range, value, label) in ChartRange::ALL {
            let chart = recorded.bars(range, now());
            let last = chart.bars.last().unwrap();
            assert!(chart.start_of(last) <= now());
            assert!(chart.start_of(last) + chart.bar_length > now(), "{label}");
            assert!(chart.bars.len() <= 96);
            assert_eq!(ChartRange::parse(value), range);
        }
        assert_eq!(ChartRange::parse("x"), ChartRange::QuarterHour);
    }

    #[test]
    fn what_is_stored_is_read_again_and_added() {
        let recorded = history([5, 4, 3, 2, 1]);
        let text = recorded.to_json();
        let mut read = ChartHistory::from_json(&text, now()).unwrap();
        assert_eq!((read.to_json(), calls(&read)), (text, vec![5; 5]));
        read.merge(&history([1]));
        assert_eq!(calls(&read), [6; 5]);
    }

    #[test]
    fn stored_form_is_bounded() {
        let recorded = history((0..14 * 24 * 60).rev().map(|minute| minute * 60));
        let text = recorded.to_json();
        assert!(text.len() < 256 << 10, "{}", text.len());
        assert!(calls(&recorded)[4] <= 7 * 24 * 60);
    }

    #[test]
    fn a_damaged_text_is_refused_and_the_future_is_ignored() {
        let text = history([1]).to_json();
        for end in 0..text.len() {
            assert!(ChartHistory::from_json(&text[..end], now()).is_err());
        }
        for damaged in [
            "{}",
            "[]",
            "{\"version\":2,\"series\":[]}",
            "{\"version\":1,\"series\":[{\"bucket_seconds\":0,\"buckets\":[]}]}",
        ] {
            assert!(
                ChartHistory::from_json(damaged, now()).is_err(),
                "{damaged}"
            );
        }
        let early = now() - Duration::from_hours(24 * 365);
        let read = ChartHistory::from_json(&text, early).unwrap();
        assert_eq!(calls(&read), [0; 5]);
    }
}
