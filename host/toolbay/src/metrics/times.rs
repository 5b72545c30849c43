//! The bounds of times.

use super::histogram::BucketCounts;

/// Bounds of times, in nanoseconds: one table for all, because each call reads it.
const BOUNDS: [u64; 14] = [
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

/// Counts of times.
pub(crate) type TimeHistogram = BucketCounts<{ BOUNDS.len() }>;

/// No times.
pub(crate) fn times() -> TimeHistogram {
    BucketCounts::new(&BOUNDS)
}
