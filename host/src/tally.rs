//! Counts what became of calls since the start, for the log: a few atomics, no lock.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};

/// Why a call can have no output, in the order in which the counts are told.
const KINDS: [&str; 15] = [
    "unknown-tool",
    "invalid-arguments",
    "busy",
    "rate",
    "resting",
    "failed",
    "invalid-output",
    "fuel",
    "deadline",
    "memory",
    "stack",
    "output",
    "limit",
    TRAP,
    "internal",
];

/// A guest crashed.
const TRAP: &str = "trap";

/// What became of calls since the start.
#[derive(Debug, Default)]
pub struct Tally {
    fine: AtomicU64,
    failed: [AtomicU64; KINDS.len()],
    cancelled: AtomicU64,
    crashes: AtomicU64,
}

/// A call that is not counted yet: it is when this is dropped, whatever ends it.
#[derive(Debug)]
pub(crate) struct Running<'a> {
    tally: &'a Tally,
    tool: String,
    ended: bool,
}

impl Tally {
    /// A call of `tool` begins.
    pub(crate) fn begin(&self, tool: &str) -> Running<'_> {
        Running { tally: self, tool: tool.to_owned(), ended: false }
    }

    /// Counts a guest that crashed, and says the how-manieth it is.
    pub(crate) fn trap(&self) -> u64 {
        self.of(TRAP).map_or(0, |count| count.fetch_add(1, Ordering::Relaxed) + 1)
    }

    fn of(&self, kind: &str) -> Option<&AtomicU64> {
        self.failed.get(KINDS.iter().position(|known| *known == kind)?)
    }

    /// Puts the counts into the log.
    pub fn log(&self) {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let (fine, cancelled, crashes) = (read(&self.fine), read(&self.cancelled), read(&self.crashes));
        let (mut kinds, mut failed) = (String::new(), 0);
        for (kind, count) in KINDS.iter().zip(&self.failed) {
            let count = read(count);
            failed += count;
            if count > 0 {
                let _ = write!(kinds, "{}{kind} {count}", if kinds.is_empty() { "" } else { ", " });
            }
        }
        let calls = fine + failed + cancelled + crashes;
        tracing::info!(calls, fine, failed, kinds, cancelled, crashes, "ended");
    }
}

impl Running<'_> {
    /// The call ended: well, or for a reason of this kind.
    pub(crate) fn end(mut self, kind: Option<&str>) {
        self.ended = true;
        let count = match kind {
            None => Some(&self.tally.fine),
            // Counted when it was logged.
            Some(TRAP) => None,
            Some(kind) => self.tally.of(kind),
        };
        count.map(|count| count.fetch_add(1, Ordering::Relaxed));
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        // Whoever contains the panic cannot tell which call it was; here both are known.
        if std::thread::panicking() {
            let crashes = self.tally.crashes.fetch_add(1, Ordering::Relaxed) + 1;
            tracing::error!(tool = self.tool, crashes, "a call ended by a fault of the server's");
        } else {
            self.tally.cancelled.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    #[test]
    fn every_end_is_counted_once() {
        let tally = Tally::default();
        tally.begin("a").end(None);
        for count in 1..=2 {
            let running = tally.begin("a");
            assert_eq!(tally.trap(), count);
            running.end(Some("trap"));
        }
        tally.begin("a").end(Some("fuel"));
        drop(tally.begin("a"));
        let crash = catch_unwind(AssertUnwindSafe(|| {
            let _running = tally.begin("a");
            panic!("a fault");
        }));
        assert!(crash.is_err());
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let failed: u64 = tally.failed.iter().map(read).sum();
        assert_eq!((read(&tally.fine), failed, read(&tally.cancelled), read(&tally.crashes)), (1, 3, 1, 1));
    }
}
