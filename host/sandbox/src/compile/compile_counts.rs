//! Counts compilations and lookups in the compile cache.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The counters behind [`CompileCounts`].
#[derive(Debug, Default)]
pub(crate) struct CompilationCounts {
    compiled: AtomicU64,
    failed: AtomicU64,
    nanoseconds: AtomicU64,
    found: AtomicU64,
    missed: AtomicU64,
}

/// Numbers of compilations and cache lookups since the sandbox started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CompileCounts {
    /// Number of successful compilations.
    pub compiled: u64,
    /// Number of failed compilations.
    pub failed: u64,
    /// Total duration of all compilations, without the time in the compiler queue.
    pub time: Duration,
    /// Number of cache hits.
    pub found: u64,
    /// Number of cache misses.
    pub missed: u64,
}

impl CompilationCounts {
    /// Counts a successful or failed compilation, and adds its duration.
    pub(crate) fn record_compilation(&self, took: Duration, well: bool) {
        let count = if well { &self.compiled } else { &self.failed };
        count.fetch_add(1, Ordering::Relaxed);
        self.nanoseconds.fetch_add(
            u64::try_from(took.as_nanos()).unwrap_or(u64::MAX),
            Ordering::Relaxed,
        );
    }

    /// Counts a lookup in the compile cache.
    pub(crate) fn record_lookup(&self, found: bool) {
        let count = if found { &self.found } else { &self.missed };
        count.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the counts so far.
    pub(crate) fn snapshot(&self) -> CompileCounts {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        CompileCounts {
            compiled: read(&self.compiled),
            failed: read(&self.failed),
            time: Duration::from_nanos(read(&self.nanoseconds)),
            found: read(&self.found),
            missed: read(&self.missed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_compilation_counts_once() {
        let compilations = CompilationCounts::default();
        compilations.record_compilation(Duration::from_millis(2), true);
        compilations.record_compilation(Duration::from_millis(3), false);
        for found in [true, false, false] {
            compilations.record_lookup(found);
        }
        let time = Duration::from_millis(5);
        assert_eq!(
            compilations.snapshot(),
            CompileCounts {
                compiled: 1,
                failed: 1,
                time,
                found: 1,
                missed: 2
            }
        );
    }
}
