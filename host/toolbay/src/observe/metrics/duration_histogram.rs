//! Histogram of durations, with the bounds that all of them share.

use super::histogram::AtomicHistogram;

/// Bucket bounds of durations, in nanoseconds. There is one table for all, because each call reads
/// it.
const TIME_BOUNDS: [u64; 14] = [
    10_000,
    30_000,
    100_000,
    300_000,
    1_000_000,
    3_000_000,
    10_000_000,
    30_000_000,
    100_000_000,
    300_000_000,
    1_000_000_000,
    3_000_000_000,
    10_000_000_000,
    30_000_000_000,
];

/// Histogram of durations.
pub(crate) type TimeHistogram = AtomicHistogram<{ TIME_BOUNDS.len() }>;

/// Creates an empty histogram of durations.
pub(crate) fn new_time_histogram() -> TimeHistogram {
    AtomicHistogram::new(&TIME_BOUNDS)
}
