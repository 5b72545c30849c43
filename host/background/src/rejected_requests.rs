//! Counting of rejected requests for the log, so that clients without access cannot fill it.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::time::{Duration, Instant};

/// Time from a first rejection to the first count. It doubles with each count of a series.
const FIRST_INTERVAL: Duration = Duration::from_secs(1);

/// Maximum time between two counts. A series without a rejection for this time has ended.
const MAX_INTERVAL: Duration = Duration::from_mins(1);

/// Maximum number of sources. Further sources are counted together.
const MAX_SOURCES: usize = 32;

/// The rejected requests of each source, such as a network. The first one of each source and reason
/// has its own line in the log. Further ones are counted.
#[derive(Debug, Default)]
pub struct RejectedRequests {
    sources: HashMap<String, SourceSeries>,
}

/// The rejections of a source that are not reported yet.
#[derive(Debug)]
struct SourceSeries {
    /// Number of rejections for each reason.
    counts: BTreeMap<&'static str, u64>,
    /// Time of the first rejection that is counted.
    counting_since: Instant,
    /// Time of the last rejection.
    last_at: Instant,
    /// Time of the next count, or of the end of the series.
    due_at: Instant,
    /// Time until the next count.
    interval: Duration,
}

/// The rejections of a source since its last line. As text, it is a sentence for the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RejectedCount {
    /// The source; `others` for the sources that are not counted separately.
    pub source: String,
    /// Time within which they arrived.
    pub within: Duration,
    /// Number of rejections for each reason.
    pub reasons: Vec<(&'static str, u64)>,
}

impl RejectedRequests {
    /// Notes a rejection of `source`. Returns whether it has its own line. Otherwise it is counted.
    pub fn note(&mut self, source: &str, reason: &'static str, now: Instant) -> bool {
        if let Some(series) = self.sources.get_mut(source) {
            return series.note(reason, now);
        }
        if self.sources.len() < MAX_SOURCES {
            return self
                .sources
                .entry(source.to_owned())
                .or_insert_with(|| SourceSeries::new(now))
                .note(reason, now);
        }
        let others = self
            .sources
            .entry(String::new())
            .or_insert_with(|| SourceSeries::new(now));
        others.count(reason, now);
        false
    }

    /// Returns whether no series is open.
    pub fn is_empty(&self) -> bool {
        self.sources.is_empty()
    }

    /// Returns and resets the counts that are due, or all of them, and the time of the next ones;
    /// `None` if no series is open.
    pub fn take_counts(
        &mut self,
        now: Instant,
        takes_all: bool,
    ) -> (Vec<RejectedCount>, Option<Instant>) {
        let mut counts = Vec::new();
        self.sources.retain(|source, series| {
            if series.due_at > now && !takes_all {
                return true;
            }
            if series.is_quiet() {
                series.due_at = series.last_at + MAX_INTERVAL;
                return series.due_at > now;
            }
            counts.push(series.take(source, now));
            true
        });
        (
            counts,
            self.sources.values().map(|series| series.due_at).min(),
        )
    }
}

impl SourceSeries {
    fn new(now: Instant) -> Self {
        let due = now + FIRST_INTERVAL;
        Self {
            counts: BTreeMap::new(),
            counting_since: now,
            last_at: now,
            due_at: due,
            interval: FIRST_INTERVAL,
        }
    }

    /// Notes a rejection. Returns whether it is the first one for this reason, which is not
    /// counted.
    fn note(&mut self, reason: &'static str, now: Instant) -> bool {
        if self.counts.contains_key(reason) {
            self.count(reason, now);
            return false;
        }
        self.counts.insert(reason, 0);
        self.last_at = now;
        true
    }

    fn count(&mut self, reason: &'static str, now: Instant) {
        if self.is_quiet() {
            self.counting_since = now;
            self.due_at = self.due_at.min(now + self.interval);
        }
        let count = self.counts.entry(reason).or_default();
        *count = count.saturating_add(1);
        self.last_at = now;
    }

    /// Returns whether nothing is counted.
    fn is_quiet(&self) -> bool {
        self.counts.values().all(|count| *count == 0)
    }

    fn take(&mut self, source: &str, now: Instant) -> RejectedCount {
        self.interval = (self.interval * 2).min(MAX_INTERVAL);
        self.due_at = now + self.interval;
        let counted = self.counts.iter_mut().filter(|(_, count)| **count > 0);
        let reasons = counted
            .map(|(reason, count)| (*reason, std::mem::take(count)))
            .collect();
        let source = if source.is_empty() { "others" } else { source }.to_owned();
        RejectedCount {
            source,
            within: now.duration_since(self.counting_since),
            reasons,
        }
    }
}

impl fmt::Display for RejectedCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let total = self
            .reasons
            .iter()
            .fold(0_u64, |sum, (_, count)| sum.saturating_add(*count));
        let requests = if total == 1 {
            "request was"
        } else {
            "requests were"
        };
        write!(
            f,
            "{total} more {requests} rejected within {} s: ",
            self.within.as_secs().max(1)
        )?;
        for (index, (reason, count)) in self.reasons.iter().enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            write!(f, "{separator}{reason} ({count})")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// Sends requests of `source` for this many seconds, ten per second. Returns the number of
    /// lines.
    fn flood(
        requests: &mut RejectedRequests,
        start: Instant,
        seconds: u32,
        source: impl Fn(u32) -> String,
    ) -> usize {
        let mut lines = 0;
        for number in 0..10 * seconds {
            let now = start + SECOND / 10 * number;
            lines += requests.take_counts(now, false).0.len();
            lines += usize::from(requests.note(&source(number), "no token", now));
        }
        lines
    }

    #[test]
    fn rejections_after_the_first_are_counted_by_source_and_reason() {
        let mut requests = RejectedRequests::default();
        let start = Instant::now();
        for number in 0..10 {
            assert_eq!(requests.note("a", "no token", start), number == 0);
            assert_eq!(requests.note("a", "Host", start), number == 0);
        }
        assert!(requests.note("b", "no token", start), "another source");
        assert_eq!(
            requests.take_counts(start, false),
            (vec![], Some(start + SECOND))
        );
        let (counts, next) = requests.take_counts(start + SECOND, false);
        let reasons = vec![("Host", 9), ("no token", 9)];
        assert_eq!(
            counts,
            [RejectedCount {
                source: "a".into(),
                within: SECOND,
                reasons
            }]
        );
        assert_eq!(
            counts[0].to_string(),
            "18 more requests were rejected within 1 s: Host (9), no token (9)"
        );
        assert_eq!(next, Some(start + 3 * SECOND));
        // What ends is counted at once.
        assert!(!requests.note("b", "no token", start + 2 * SECOND));
        let (counts, _) = requests.take_counts(start + 2 * SECOND, true);
        assert_eq!(
            counts[0].to_string(),
            "1 more request was rejected within 1 s: no token (1)"
        );
        // After a minute without rejections, a new series begins.
        assert_eq!(
            requests.take_counts(start + 70 * SECOND, false),
            (vec![], None)
        );
        assert!(requests.is_empty() && requests.note("a", "no token", start + 71 * SECOND));
    }

    #[test]
    fn continuing_source_has_few_lines() {
        let lines = flood(
            &mut RejectedRequests::default(),
            Instant::now(),
            3_600,
            |_| "a".to_owned(),
        );
        assert!((60..70).contains(&lines), "{lines}");
    }

    #[test]
    fn excess_sources_share_a_count() {
        let mut requests = RejectedRequests::default();
        let start = Instant::now();
        let lines = flood(&mut requests, start, 60, |number| number.to_string());
        assert!((MAX_SOURCES..MAX_SOURCES + 10).contains(&lines), "{lines}");
        assert_eq!(requests.sources.len(), MAX_SOURCES + 1);
        let (counts, _) = requests.take_counts(start + 60 * SECOND, true);
        assert!(
            counts.iter().any(|count| count.source == "others"),
            "{counts:?}"
        );
    }
}
