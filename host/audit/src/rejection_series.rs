//! Deduplication of rejections. The first rejection of a series has a line. Further ones are
//! counted, and reported in at most one line per second for each caller and reason.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::event::RejectedRecord;

/// Interval between two lines of a series. A series without a rejection for this time has ended.
const REPORT_INTERVAL: Duration = Duration::from_secs(1);

/// Maximum number of series. Beyond that, callers share one series per reason.
const MAX_SERIES: usize = 1_024;

/// Caller, identifier of the error kind, and key of the limit.
type RejectionKey = (String, &'static str, Option<&'static str>);

/// The rejections of a series that are not reported yet.
#[derive(Debug, Default)]
struct SeriesCount {
    count: u64,
    /// The tool of all counted rejections; empty if they have different tools, or if nothing is
    /// counted.
    tool: String,
}

/// The current series.
#[derive(Debug, Default)]
pub(crate) struct SeriesTable {
    counts: HashMap<RejectionKey, SeriesCount>,
    /// Time of the next report; `None` if there is no series.
    next_report: Option<Instant>,
}

impl SeriesCount {
    fn add(&mut self, rejected: &RejectedRecord) {
        if self.count == 0 {
            self.tool.clone_from(&rejected.tool);
        } else if self.tool != rejected.tool {
            self.tool = String::new();
        }
        self.count = self.count.saturating_add(rejected.count);
    }
}

impl SeriesTable {
    /// Counts a rejection. Returns whether it is the first of its series: it has its own line and
    /// is not counted.
    pub(crate) fn start_or_count(&mut self, rejected: &RejectedRecord) -> bool {
        let RejectedRecord {
            caller,
            outcome,
            limit,
            ..
        } = rejected;
        let key = (caller.clone(), *outcome, *limit);
        if let Some(count) = self.counts.get_mut(&key) {
            count.add(rejected);
            return false;
        }
        self.next_report = self
            .next_report
            .or_else(|| Some(Instant::now() + REPORT_INTERVAL));
        if self.counts.len() < MAX_SERIES {
            self.counts.insert(key, SeriesCount::default());
            return true;
        }
        // There are few reasons, regardless of clients.
        self.counts
            .entry((String::new(), outcome, *limit))
            .or_default()
            .add(rejected);
        false
    }

    /// Counts a rejection that started a series but whose line did not fit in the queue.
    pub(crate) fn count(&mut self, rejected: &RejectedRecord) {
        let RejectedRecord {
            caller,
            outcome,
            limit,
            ..
        } = rejected;
        self.counts
            .entry((caller.clone(), outcome, *limit))
            .or_default()
            .add(rejected);
        self.next_report = self
            .next_report
            .or_else(|| Some(Instant::now() + REPORT_INTERVAL));
    }

    /// Returns the time of the next report.
    pub(crate) fn next_report(&self) -> Option<Instant> {
        self.next_report
    }

    /// Returns and resets the counts if they are due, or if `now` is set.
    pub(crate) fn take_due(&mut self, now: bool) -> Vec<RejectedRecord> {
        if !now && self.next_report.is_none_or(|due| due > Instant::now()) {
            return Vec::new();
        }
        let to_record = |((caller, outcome, limit), count): (&RejectionKey, &mut SeriesCount)| {
            let SeriesCount { count, tool } = std::mem::take(count);
            RejectedRecord {
                caller: caller.clone(),
                tool,
                outcome,
                limit: *limit,
                count,
            }
        };
        self.counts.retain(|_, count| count.count > 0);
        let records = self.counts.iter_mut().map(to_record).collect();
        self.next_report = (!self.counts.is_empty()).then(|| Instant::now() + REPORT_INTERVAL);
        records
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rejected(caller: &str, tool: &str, outcome: &'static str) -> RejectedRecord {
        RejectedRecord {
            caller: caller.to_owned(),
            tool: tool.to_owned(),
            outcome,
            limit: None,
            count: 1,
        }
    }

    #[test]
    fn rejections_after_the_first_are_counted_by_caller_and_reason() {
        let mut table = SeriesTable::default();
        for n in 0..10 {
            assert_eq!(
                table.start_or_count(&rejected("a", "t", "rate-limited")),
                n == 0
            );
            assert_eq!(
                table.start_or_count(&rejected("a", &n.to_string(), "unknown-tool")),
                n == 0
            );
        }
        assert!(
            table.start_or_count(&rejected("b", "t", "rate-limited")),
            "the series of another caller"
        );
        let mut counted = table.take_due(true);
        counted.sort_by_key(|one| one.outcome);
        let expected = [("rate-limited", "t", 9), ("unknown-tool", "", 9)];
        assert_eq!(
            counted
                .iter()
                .map(|one| (one.outcome, &*one.tool, one.count))
                .collect::<Vec<_>>(),
            expected
        );
        assert!(
            !table.start_or_count(&rejected("a", "u", "rate-limited")),
            "the series goes on"
        );
        assert!(
            table.start_or_count(&rejected("b", "t", "rate-limited")),
            "it had ended"
        );
        assert_eq!(table.take_due(true), [rejected("a", "u", "rate-limited")]);
        assert_eq!((table.take_due(true), table.next_report()), (vec![], None));
    }

    #[test]
    fn excess_callers_share_a_series() {
        let mut table = SeriesTable::default();
        for caller in 0..3 * MAX_SERIES {
            assert_eq!(
                table.start_or_count(&rejected(&caller.to_string(), "t", "rate-limited")),
                caller < MAX_SERIES
            );
        }
        assert_eq!(table.counts.len(), MAX_SERIES + 1);
        assert_eq!(
            table.take_due(true),
            [RejectedRecord {
                count: 2 * MAX_SERIES as u64,
                ..rejected("", "t", "rate-limited")
            }]
        );
    }
}
