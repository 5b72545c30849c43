//! Histograms with fixed bounds.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use toolbay_otel::HistogramPoint;

/// Counts of values per bucket, and of values above the last bound.
///
/// The histogram of `prometheus-client` takes a lock for each value. Here, one cache line holds
/// everything that a small value needs. A guest evicts the CPU caches between two calls, and one
/// cache miss costs as much as the rest of the work.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct AtomicHistogram<const N: usize> {
    bounds: &'static [u64; N],
    sum: AtomicU64,
    counts: [AtomicU64; N],
    above: AtomicU64,
}

impl<const N: usize> AtomicHistogram<N> {
    /// Creates an empty histogram with these bounds, in ascending order.
    pub(crate) fn new(bounds: &'static [u64; N]) -> Self {
        let counts = std::array::from_fn(|_| AtomicU64::new(0));
        Self {
            bounds,
            sum: AtomicU64::new(0),
            counts,
            above: AtomicU64::new(0),
        }
    }

    /// Records a value.
    pub(crate) fn record(&self, value: u64) {
        // Most values are small.
        let within = self
            .bounds
            .iter()
            .zip(&self.counts)
            .find(|(bound, _)| value <= **bound);
        within
            .map_or(&self.above, |(_, count)| count)
            .fetch_add(1, Ordering::Relaxed);
        self.sum.fetch_add(value, Ordering::Relaxed);
    }

    /// Records a duration, in nanoseconds.
    pub(crate) fn record_time(&self, time: Duration) {
        self.record(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
    }

    /// Returns the distribution, with values divided by `unit`.
    #[expect(
        clippy::cast_precision_loss,
        reason = "the exposition formats have only floating-point numbers"
    )]
    pub(crate) fn read(&self, unit: f64) -> HistogramPoint {
        // Buckets are read first, so the sum can include values that the buckets lack, but not the
        // reverse.
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let mut buckets: Vec<(f64, u64)> = self
            .bounds
            .iter()
            .zip(&self.counts)
            .map(|(bound, count)| (*bound as f64 / unit, read(count)))
            .collect();
        buckets.push((f64::INFINITY, read(&self.above)));
        let count = buckets.iter().map(|(_, count)| count).sum();
        HistogramPoint {
            sum: read(&self.sum) as f64 / unit,
            count,
            buckets,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_counts_within_the_first_bound_that_it_does_not_exceed() {
        let histogram = AtomicHistogram::new(&[10, 100]);
        for value in [0, 10, 11, 100, 101, 1_000_000] {
            histogram.record(value);
        }
        let HistogramPoint {
            sum,
            count,
            buckets,
        } = histogram.read(10.0);
        assert_eq!((sum.to_bits(), count), (100_022.2_f64.to_bits(), 6));
        assert_eq!(buckets, [(1.0, 2), (10.0, 2), (f64::INFINITY, 2)]);
        AtomicHistogram::new(&[1]).record_time(Duration::MAX);
    }
}
