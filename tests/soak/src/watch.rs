//! Watches a run from outside: the server's resources and the progress.

use std::time::{Duration, Instant};

use anstream::println;
use anyhow::Result;
use toolbay_testkit::process_usage::{ProcessUsage, vitals};
use toolbay_testkit::terminal;

use crate::counts::ratio;
use crate::goal::Goal;
use crate::sample::Sample;
use crate::soak::Soak;
use crate::stage::Stage;
use crate::verdict::Verdict;

/// Sampling interval.
const LOOK: Duration = Duration::from_millis(500);

/// Approximate number of lines of the table, if the run takes its full time.
const LINES: u32 = 60;

/// Maximum time until unused threads and files are released.
const PATIENCE: Duration = Duration::from_secs(30);

/// Duration of the measurement of the idle server.
const IDLE: Duration = Duration::from_secs(1);

/// The columns for outcomes of calls, with their headings. All other outcomes are in the last
/// column.
const KINDS: [(&str, &str); 13] = [
    ("ok", "ok"),
    ("fuel", "fuel"),
    ("late", "deadline"),
    ("memory", "memory"),
    ("stack", "stack"),
    ("output", "output"),
    ("trap", "trap"),
    ("breaker", "disabled"),
    ("args", "invalid-arguments"),
    ("result", "invalid-output"),
    ("failed", "failed"),
    ("unknown", "-32602"),
    ("cancel", "cancelled"),
];

/// The watcher of a run.
pub(crate) struct Watch<'a> {
    soak: &'a Soak<'a>,
    goal: Goal,
    began: Instant,
    first: ProcessUsage,
    samples: Vec<Sample>,
    /// The time of the last printed line, and the number of calls then.
    printed: (Instant, u64),
}

impl<'a> Watch<'a> {
    pub(crate) fn begin(soak: &'a Soak<'a>, goal: Goal) -> Result<Self> {
        let began = Instant::now();
        let first = vitals(soak.connection.pid())?;
        println!(
            "At least {} calls and {} changes of files, for at most {}; seed {}",
            goal.calls,
            goal.reloads,
            humantime::format_duration(goal.time),
            goal.seed,
        );
        let kinds = KINDS.map(|(name, _)| format!("{name:>7}")).join(" ");
        let heading = format!(
            "{:>7} {:>9} {:>7} {:>8} {:>7} {:>7} {:>5} {:>7} {:>5} {:>6}  {kinds} {:>7}",
            "time",
            "calls",
            "reloads",
            "calls/s",
            "RSS",
            "private",
            "files",
            "threads",
            "CPU",
            "faults",
            "other",
        );
        println!("{}", terminal::bold(heading));
        Ok(Self {
            soak,
            goal,
            began,
            first,
            samples: Vec::new(),
            printed: (began, 0),
        })
    }

    /// Watches until the goal is reached or the time is over.
    pub(crate) fn until_done(&mut self) -> Result<()> {
        let every = (self.goal.time / LINES).clamp(Duration::from_secs(1), Duration::from_secs(30));
        let mut cpu = self.first.cpu;
        loop {
            let over = self.soak.over.wait_until(LOOK, |over| *over);
            let vitals = vitals(self.soak.connection.pid())?;
            let (calls, reloads) = self.soak.counts.done();
            let done = (ratio(calls, self.goal.calls)).min(ratio(reloads, self.goal.reloads));
            let late = self.began.elapsed() >= self.goal.time;
            let elapsed =
                self.began.elapsed().as_secs_f64() / self.goal.time.as_secs_f64().max(1e-9);
            self.samples.push(Sample {
                vitals,
                done: done.max(elapsed.min(1.0)),
            });
            let end = over || late || done >= 1.0;
            if end || self.printed.0.elapsed() >= every {
                let share = vitals.cpu.saturating_sub(cpu).as_secs_f64()
                    / self.printed.0.elapsed().as_secs_f64();
                self.print(vitals, share);
                cpu = vitals.cpu;
            }
            if end {
                return Ok(());
            }
        }
    }

    fn print(&mut self, vitals: ProcessUsage, cpu: f64) {
        let totals = self.soak.counts.now();
        let speed =
            ratio(totals.calls - self.printed.1, 1) / self.printed.0.elapsed().as_secs_f64();
        let counts = KINDS.map(|(_, name)| totals.kinds.get(name).copied().unwrap_or_default());
        let left = totals.calls - counts.iter().sum::<u64>();
        let kinds = counts.map(|count| format!("{count:>7}")).join(" ");
        println!(
            "{:>6.0}s {:>9} {:>7} {:>8.0} {:>6}M {:>6}M {:>5} {:>7} {:>4.0}% {:>6}  {kinds} {left:>7}",
            self.began.elapsed().as_secs_f64(),
            totals.calls,
            totals.reloads,
            speed,
            vitals.resident / 1024,
            vitals.anonymous / 1024,
            vitals.descriptors,
            vitals.threads,
            cpu * 100.0,
            self.soak.connection.ledger().faults().count,
        );
        self.printed = (Instant::now(), totals.calls);
    }

    /// Checks everything, after calls and changes have stopped.
    pub(crate) fn end(self, stage: &Stage) -> Result<Verdict> {
        let pid = self.soak.connection.pid();
        let books = self.soak.connection.ledger();
        let totals = self.soak.counts.now();
        let mut verdict = Verdict::new();
        verdict.took(&totals, self.goal, self.began.elapsed(), stage.editions());
        verdict.answers(books, books.wait_for_invalid_line_errors(PATIENCE));
        verdict.log(&self.soak.log.read(|log| log.errors.clone()));
        verdict.memory(&self.samples);
        // Idle threads and open files are released after a while.
        let began = Instant::now();
        let mut last = vitals(pid)?;
        while (last.threads > self.first.threads || last.descriptors > self.first.descriptors)
            && began.elapsed() < PATIENCE
        {
            crate::files::pause(LOOK);
            last = vitals(pid)?;
        }
        crate::files::pause(IDLE);
        let later = vitals(pid)?;
        verdict.rest(self.first, later, later.cpu.saturating_sub(last.cpu));
        Ok(verdict)
    }
}
