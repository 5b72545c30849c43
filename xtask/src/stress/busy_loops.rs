//! Threads that use the CPU until they are stopped.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};

/// Threads that use the CPU until this value is dropped. They are threads of this process, so they
/// cannot outlive the command.
pub(super) struct BusyLoops {
    end: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

/// Number of steps of a thread between two checks of the end flag.
const STEPS_PER_TURN: u64 = 1 << 16;

impl BusyLoops {
    /// Starts this number of threads.
    pub(super) fn start(count: u16) -> Self {
        Self::start_counted(count, &Arc::default())
    }

    /// Like [`start`](Self::start). The threads count their turns in `turns`.
    fn start_counted(count: u16, turns: &Arc<AtomicU64>) -> Self {
        let end = Arc::new(AtomicBool::new(false));
        let threads = (0..count).map(|_| {
            let end = Arc::clone(&end);
            let turns = Arc::clone(turns);
            thread::spawn(move || {
                while !end.load(Ordering::Relaxed) {
                    black_box((0..STEPS_PER_TURN).fold(1_u64, |sum, step| {
                        black_box(sum.wrapping_mul(31).wrapping_add(step))
                    }));
                    turns.fetch_add(1, Ordering::Relaxed);
                }
            })
        });
        Self {
            threads: threads.collect(),
            end,
        }
    }
}

impl Drop for BusyLoops {
    fn drop(&mut self) {
        self.end.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // A thread that panicked has also ended.
            drop(thread.join());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loops_compute_until_they_are_dropped() {
        let turns = Arc::default();
        let loops = BusyLoops::start_counted(3, &turns);
        while turns.load(Ordering::Relaxed) < 3 {
            thread::yield_now();
        }
        drop(loops);
        // The threads have been joined, so no other reference to the counter exists.
        assert_eq!(Arc::strong_count(&turns), 1);
    }
}
