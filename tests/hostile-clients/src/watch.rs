//! What a server holds, compared with what it held before any hostile client came.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use toolbay_testkit::vitals::{Vitals, forget_peak, vitals};
use toolbay_testkit::{DEADLINE, Log, Signal};

/// How much larger the server may be after any number of clients than before the first, in KiB. The allocator keeps
/// some memory for each thread.
const GROWTH: u64 = 24 << 10;

/// The time between two looks.
const PAUSE: Duration = Duration::from_millis(20);

/// Descriptors that may come and go: one for a thread of the runtime, one for the log.
const DESCRIPTORS: u64 = 2;

/// A server, and what it held at first.
#[derive(Debug)]
pub(crate) struct Watch {
    pid: u32,
    log: Log,
    before: Vitals,
    /// How much it may grow while clients are there, in KiB.
    most: u64,
    /// What it held when the round began, in KiB.
    began: u64,
    /// The most that it grew in any round, in KiB.
    grown: u64,
    /// The most that it held more than before after any round, in KiB.
    left: u64,
}

impl Watch {
    /// Begins when the server is as large as it gets with honest clients alone. It may grow by `most` KiB in a round.
    pub(crate) fn new(pid: u32, log: &Log, most: u64) -> Result<Self> {
        Ok(Self { pid, log: log.clone(), before: vitals(pid)?, most, began: 0, grown: 0, left: 0 })
    }

    /// Begins a round.
    pub(crate) fn begin(&mut self) -> Result<()> {
        self.began = held(&vitals(self.pid)?);
        forget_peak(self.pid)
    }

    /// Ends a round: the server may not have grown too much, and must come to hold what it held before. `ask` makes an
    /// honest client ask for something, which lets the server return memory.
    ///
    /// # Errors
    ///
    /// It grew too much, holds more than before, or panicked.
    pub(crate) fn end(&mut self, ask: impl FnMut() -> Result<()>) -> Result<()> {
        let now = vitals(self.pid)?;
        let grown = now.peak.saturating_sub(now.files).saturating_sub(self.began);
        self.grown = self.grown.max(grown);
        let most = self.most;
        ensure!(grown <= most, "the server grew by {grown} KiB, expected at most {most}");
        let log = self.log.text();
        ensure!(!log.contains("panicked"), "the server panicked:\n{log}");
        let before = self.before;
        self.until(ask, |now| {
            held(now) <= held(&before) + GROWTH && now.descriptors <= before.descriptors + DESCRIPTORS
        })?;
        self.left = self.left.max(held(&vitals(self.pid)?).saturating_sub(held(&before)));
        Ok(())
    }

    /// What is worth knowing of its memory.
    pub(crate) fn words(&self) -> String {
        let [before, grown, left] = [held(&self.before), self.grown, self.left].map(|kib| kib >> 10);
        format!("held {before} MiB, {grown} more at most during a round, and {left} more at most after one")
    }

    /// Waits until the threads that were started for a while have ended.
    ///
    /// # Errors
    ///
    /// They have not.
    pub(crate) fn until_threads_are_gone(&self, ask: impl FnMut() -> Result<()>) -> Result<()> {
        let before = self.before.threads;
        self.until(ask, |now| now.threads <= before)
    }

    fn until(&self, mut ask: impl FnMut() -> Result<()>, fits: impl Fn(&Vitals) -> bool) -> Result<()> {
        let (began, pause) = (Instant::now(), Signal::new(false));
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

/// Memory without pages of files, in KiB.
fn held(vitals: &Vitals) -> u64 {
    vitals.resident.saturating_sub(vitals.files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_is_found_although_it_has_passed() {
        let mut watch = Watch::new(std::process::id(), &Log::default(), 16 << 10).unwrap();
        watch.begin().unwrap();
        watch.end(|| Ok(())).unwrap();
        watch.begin().unwrap();
        // An odd byte in each page, so that the pages are there.
        let large: Vec<u8> = (0..64 << 20).map(|n: u32| n.to_le_bytes()[0]).collect();
        drop(std::hint::black_box(large));
        let error = watch.end(|| Ok(())).unwrap_err().to_string();
        assert!(error.starts_with("the server grew by ") && error.ends_with("expected at most 16384"), "{error}");
    }

    #[test]
    fn a_panic_in_the_log_is_found() {
        let log = Log::follow(&b"thread 'main' panicked at src/main.rs:1:1\n"[..]);
        log.wait_for_end();
        let mut watch = Watch::new(std::process::id(), &log, u64::MAX).unwrap();
        watch.begin().unwrap();
        assert!(watch.end(|| Ok(())).unwrap_err().to_string().starts_with("the server panicked"));
    }
}
