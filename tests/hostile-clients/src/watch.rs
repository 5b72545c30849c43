//! Compares the resources of a server with those before the first hostile client.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use toolbay_testkit::process_usage::{ProcessUsage, reset_peak_memory, vitals};
use toolbay_testkit::{DEADLINE, ObservableValue, ProgramLog};

/// Maximum growth of the server after any number of clients, compared with before the first, in
/// KiB. The allocator retains some memory for each thread.
const GROWTH: u64 = 24 << 10;

/// The time between two checks.
const PAUSE: Duration = Duration::from_millis(20);

/// Number of descriptors that may vary: one for a thread of the runtime, one for the log.
const DESCRIPTORS: u64 = 2;

/// A server, and its initial resources.
#[derive(Debug)]
pub(crate) struct Watch {
    pid: u32,
    log: ProgramLog,
    before: ProcessUsage,
    /// Maximum growth while clients are connected, in KiB.
    most: u64,
    /// Memory at the start of the round, in KiB.
    began: u64,
    /// Largest growth in any round, in KiB.
    grown: u64,
    /// Largest growth after any round, compared with the initial memory, in KiB.
    left: u64,
}

impl Watch {
    /// Starts when the server has reached its maximum size with honest clients only. It may grow by
    /// `most` KiB in a round.
    pub(crate) fn new(pid: u32, log: &ProgramLog, most: u64) -> Result<Self> {
        Ok(Self {
            pid,
            log: log.clone(),
            before: vitals(pid)?,
            most,
            began: 0,
            grown: 0,
            left: 0,
        })
    }

    /// Starts a round.
    pub(crate) fn begin(&mut self) -> Result<()> {
        self.began = held(&vitals(self.pid)?);
        reset_peak_memory(self.pid)
    }

    /// Ends a round. The server must not have grown too much, and must return to its initial
    /// resources. `ask` makes an honest client send requests, which lets the server release memory.
    ///
    /// # Errors
    ///
    /// The server grew too much, retains more than before, or panicked.
    pub(crate) fn end(&mut self, ask: impl FnMut() -> Result<()>) -> Result<()> {
        let now = vitals(self.pid)?;
        let grown = now
            .peak
            .saturating_sub(now.files)
            .saturating_sub(self.began);
        self.grown = self.grown.max(grown);
        let most = self.most;
        ensure!(
            grown <= most,
            "the server grew by {grown} KiB, expected at most {most}"
        );
        let log = self.log.text();
        ensure!(!log.contains("panicked"), "the server panicked:\n{log}");
        let before = self.before;
        self.until(ask, |now| {
            held(now) <= held(&before) + GROWTH
                && now.descriptors <= before.descriptors + DESCRIPTORS
        })?;
        self.left = self
            .left
            .max(held(&vitals(self.pid)?).saturating_sub(held(&before)));
        Ok(())
    }

    /// Returns a summary of its memory.
    pub(crate) fn words(&self) -> String {
        let [before, grown, left] =
            [held(&self.before), self.grown, self.left].map(|kib| kib >> 10);
        format!(
            "held {before} MiB, {grown} more at most during a round, and {left} more at most after one"
        )
    }

    /// Waits until temporary threads have ended.
    ///
    /// # Errors
    ///
    /// They did not end in time.
    pub(crate) fn until_threads_are_gone(&self, ask: impl FnMut() -> Result<()>) -> Result<()> {
        let before = self.before.threads;
        self.until(ask, |now| now.threads <= before)
    }

    fn until(
        &self,
        mut ask: impl FnMut() -> Result<()>,
        fits: impl Fn(&ProcessUsage) -> bool,
    ) -> Result<()> {
        let began = Instant::now();
        let pause = ObservableValue::new(false);
        loop {
            let now = vitals(self.pid).context("the server is gone")?;
            if fits(&now) {
                return Ok(());
            }
            if began.elapsed() > DEADLINE {
                let before = self.before;
                bail!(
                    "the server holds more than before: {now:?}, before: {before:?}; its log ends:\n{}",
                    self.log.tail(20)
                );
            }
            ask()?;
            pause.wait_until(PAUSE, |over| *over);
        }
    }
}

/// Returns the memory without file pages, in KiB.
fn held(vitals: &ProcessUsage) -> u64 {
    vitals.resident.saturating_sub(vitals.files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_is_found_although_it_has_passed() {
        let mut watch = Watch::new(std::process::id(), &ProgramLog::default(), 16 << 10).unwrap();
        watch.begin().unwrap();
        watch.end(|| Ok(())).unwrap();
        watch.begin().unwrap();
        // Each page contains a nonzero byte, so that it is resident.
        let large: Vec<u8> = (0..64 << 20).map(|n: u32| n.to_le_bytes()[0]).collect();
        drop(std::hint::black_box(large));
        let error = watch.end(|| Ok(())).unwrap_err().to_string();
        assert!(
            error.starts_with("the server grew by ") && error.ends_with("expected at most 16384"),
            "{error}"
        );
    }

    #[test]
    fn a_panic_in_the_log_is_found() {
        let log = ProgramLog::follow(&b"thread 'main' panicked at src/main.rs:1:1\n"[..]);
        log.wait_for_end();
        let mut watch = Watch::new(std::process::id(), &log, u64::MAX).unwrap();
        watch.begin().unwrap();
        assert!(
            watch
                .end(|| Ok(()))
                .unwrap_err()
                .to_string()
                .starts_with("the server panicked")
        );
    }
}
