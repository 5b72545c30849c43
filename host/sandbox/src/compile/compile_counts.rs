//! Counts compilations and lookups in the compile cache.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The counters behind [`CompileCounts`].
#[derive(Debug, Default)]
pub(crate) struct CompileCounters {
    compiled: AtomicU64,
    failed: AtomicU64,
    nanoseconds: AtomicU64,
    cache_hits: AtomicU64,
    cache_misses: AtomicU64,
}

/// Numbers of compilations and cache lookups since the sandbox started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CompileCounts {
    /// Number of successful compilations.
    pub compiled: u64,
    /// Number of failed compilations.
    pub failed: u64,
    /// Total duration of all compilations, without the time in the compiler queue.
    pub total_time: Duration,
    /// Number of cache hits.
    pub cache_hits: u64,
    /// Number of cache misses.
    pub cache_misses: u64,
}

impl CompileCounters {
    /// Counts a successful or failed compilation, and adds its duration.
    pub(crate) fn record_compilation(&self, duration: Duration, is_success: bool) {
        let count = if is_success {
            &self.compiled
        } else {
            &self.failed
        };
        count.fetch_add(1, Ordering::Relaxed);
        self.nanoseconds.fetch_add(
            u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX),
            Ordering::Relaxed,
        );
    }

    /// Counts a lookup in the compile cache.
    pub(crate) fn record_lookup(&self, is_hit: bool) {
        let count = if is_hit {
            &self.cache_hits
        } else {
            &self.cache_misses
        };
        count.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the counts so far.
    pub(crate) fn snapshot(&self) -> CompileCounts {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        CompileCounts {
            compiled: read(&self.compiled),
            failed: read(&self.failed),
            total_time: Duration::from_nanos(read(&self.nanoseconds)),
            cache_hits: read(&self.cache_hits),
            cache_misses: read(&self.cache_misses),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_compilation_counts_once() {
        let compilations = CompileCounters::default();
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
                total_time: time,
                cache_hits: 1,
                cache_misses: 2
            }
        );
    }
}
