//! Checks the results of a soak test.

use std::fmt;
use std::process::ExitStatus;
use std::time::Duration;

use toolbay_testkit::process_usage::ProcessUsage;
use toolbay_testkit::{RequestLedger, terminal};

use crate::counts::{Totals, ratio};
use crate::goal::Goal;
use crate::sample::Sample;

/// The fraction of a run until the server has reached its normal size.
const WARM_UP: f64 = 0.2;

/// Number of windows into which the time after the warm-up is divided.
const WINDOWS: usize = 8;

/// Minimum number of samples in a window, for a meaningful median.
const WINDOW: usize = 20;

/// Maximum ratio of a window's median memory to that of the first window.
const GROWTH: f64 = 1.10;

/// Maximum number of additional threads or files compared with the first window. They vary while
/// plugins load.
const MORE: u64 = 2;

/// Maximum CPU time per second of an idle server, which polls the folder occasionally.
const IDLE: Duration = Duration::from_millis(50);

/// The results of the checks.
pub(crate) struct Verdict {
    remarks: Vec<String>,
    checks: Vec<(bool, String)>,
}

impl Verdict {
    pub(crate) fn new() -> Self {
        Self {
            remarks: Vec::new(),
            checks: Vec::new(),
        }
    }

    /// Returns whether all checks passed.
    pub(crate) fn is_good(&self) -> bool {
        self.checks.iter().all(|(good, _)| *good)
    }

    /// Adds remarks about the amount of work that was done.
    pub(crate) fn took(&mut self, totals: &Totals, goal: Goal, took: Duration, editions: u64) {
        let took = Duration::from_secs(took.as_secs());
        let changes: Vec<String> = totals
            .changes
            .iter()
            .map(|(what, count)| format!("{count} {what}"))
            .collect();
        self.remarks.push(format!(
            "{} calls and {} changes of files in {}: {}; {editions} different components took the places of others",
            totals.calls,
            totals.reloads,
            humantime::format_duration(took),
            changes.join(", "),
        ));
        if totals.calls < goal.calls || totals.reloads < goal.reloads {
            self.remarks.push(format!(
                "Scaled to the time that there was: {:.0} % of {} calls and {:.0} % of {} changes",
                ratio(totals.calls, goal.calls) * 100.0,
                goal.calls,
                ratio(totals.reloads, goal.reloads) * 100.0,
                goal.reloads,
            ));
        }
        if !totals.seen.is_empty() {
            let seen = &totals.seen;
            self.remarks.push(format!(
                "A change was seen after {} ms (median), {} ms (99 of 100), {} ms (the slowest), with all of this going on",
                seen.median().as_millis(),
                seen.percentile(99.0).as_millis(),
                seen.max().as_millis(),
            ));
        }
    }

    /// Checks that every request got one valid response.
    pub(crate) fn answers(&mut self, books: &RequestLedger, garbage: u64) {
        let faults = books.faults();
        let lost = books.unanswered_requests();
        let gone = books.request_count() - books.response_count() - lost.len() as u64;
        self.check(
            lost.is_empty() && garbage == 0,
            format!(
                "nothing lost: {} requests, {} answers, {gone} cancelled in time, {} lost",
                books.request_count(),
                books.response_count(),
                lost.len() as u64 + garbage,
            ),
        );
        self.check(
            faults.count == 0,
            format!(
                "nothing doubled, mixed up, of the wrong kind, stale or not announced: {} faults",
                faults.count
            ),
        );
        self.remarks.extend(
            faults
                .first
                .into_iter()
                .map(|fault| format!("Fault: {fault}")),
        );
    }

    /// Checks that the server logged no internal errors.
    pub(crate) fn log(&mut self, errors: &[String]) {
        self.check(
            errors.is_empty(),
            format!("no error in the log: {}", errors.len()),
        );
        self.remarks
            .extend(errors.iter().take(5).map(|line| format!("Log: {line}")));
    }

    /// Checks that memory, threads and files stay constant after the warm-up.
    pub(crate) fn memory(&mut self, samples: &[Sample]) {
        let warm: Vec<&Sample> = samples
            .iter()
            .filter(|sample| sample.done >= WARM_UP)
            .collect();
        if warm.len() < WINDOWS * WINDOW {
            self.remarks
                .push("Too short to say whether memory, threads and files grow".to_owned());
            return;
        }
        let windows: Vec<&[&Sample]> = warm.chunks(warm.len().div_ceil(WINDOWS)).collect();
        let medians = |of: fn(&ProcessUsage) -> u64| -> (u64, u64) {
            let medians: Vec<u64> = windows.iter().map(|window| median(window, of)).collect();
            (
                medians.first().copied().unwrap_or_default(),
                medians.iter().copied().max().unwrap_or_default(),
            )
        };
        let (first, most) = medians(|vitals| vitals.resident);
        let growth = ratio(most, first);
        self.check(
            growth <= GROWTH,
            format!(
                "RSS flat within {:.0} %: {} MiB after the warm-up, later at most {} MiB ({:+.1} %; medians of {} windows)",
                (GROWTH - 1.0) * 100.0,
                first / 1024,
                most / 1024,
                (growth - 1.0) * 100.0,
                windows.len(),
            ),
        );
        for (what, (first, most)) in [
            ("threads", medians(|vitals| vitals.threads)),
            ("files", medians(|vitals| vitals.descriptors)),
        ] {
            self.check(
                most <= first + MORE,
                format!("{what} without growth: {first} after the warm-up, then at most {most}"),
            );
        }
    }

    /// Checks that the idle server returns to its initial resources and uses no CPU time.
    pub(crate) fn rest(&mut self, before: ProcessUsage, after: ProcessUsage, cpu: Duration) {
        for (what, before, after) in [
            ("threads", before.threads, after.threads),
            ("files", before.descriptors, after.descriptors),
        ] {
            self.check(
                after <= before,
                format!("{what} at rest: {before} before, {after} after"),
            );
        }
        self.check(
            cpu <= IDLE,
            format!(
                "no work left behind: {} ms of processor time in a second of rest",
                cpu.as_millis()
            ),
        );
    }

    /// Checks how the server exited.
    pub(crate) fn ended(&mut self, (status, took): (ExitStatus, Duration)) {
        self.check(
            status.success(),
            format!(
                "the server ended {} ms after its input ({status})",
                took.as_millis()
            ),
        );
    }

    fn check(&mut self, good: bool, what: String) {
        self.checks.push((good, what));
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for remark in &self.remarks {
            writeln!(f, "{remark}")?;
        }
        for (good, what) in &self.checks {
            let mark = if *good {
                terminal::green("ok  ")
            } else {
                terminal::red("FAIL")
            };
            writeln!(f, "{mark}  {what}")?;
        }
        write!(
            f,
            "{}",
            if self.is_good() {
                "It held."
            } else {
                "It did not hold."
            }
        )
    }
}

fn median(window: &[&Sample], of: fn(&ProcessUsage) -> u64) -> u64 {
    let mut values: Vec<u64> = window.iter().map(|sample| of(&sample.vitals)).collect();
    values.sort_unstable();
    values.get(values.len() / 2).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(resident: impl Fn(u64) -> u64, threads: impl Fn(u64) -> u64) -> Vec<Sample> {
        let at = |n: u64| ProcessUsage {
            resident: resident(n),
            threads: threads(n),
            ..ProcessUsage::default()
        };
        (0..400)
            .map(|n| Sample {
                vitals: at(n),
                done: ratio(n, 400),
            })
            .collect()
    }

    fn is_good(samples: &[Sample]) -> bool {
        let mut verdict = Verdict::new();
        verdict.memory(samples);
        verdict.is_good()
    }

    #[test]
    fn growth_is_seen_and_noise_is_not() {
        assert!(is_good(&samples(|n| 1000 + n % 50, |n| 10 + n % 7)));
        assert!(
            is_good(&samples(|n| if n < 80 { 10 * n } else { 1000 }, |_| 10)),
            "the warm-up does not count"
        );
        assert!(!is_good(&samples(|n| 1000 + n, |_| 10)));
        assert!(!is_good(&samples(|_| 1000, |n| 10 + n / 50)));
    }

    #[test]
    fn a_few_samples_say_nothing() {
        let mut verdict = Verdict::new();
        verdict.memory(&samples(|n| n * 1000, |_| 10)[..50]);
        assert!(verdict.is_good() && verdict.checks.is_empty() && verdict.remarks.len() == 1);
    }

    #[test]
    fn one_check_that_fails_is_enough() {
        let mut verdict = Verdict::new();
        verdict.rest(
            ProcessUsage::default(),
            ProcessUsage::default(),
            Duration::ZERO,
        );
        assert!(verdict.is_good());
        verdict.log(&["ERROR".to_owned()]);
        assert!(!verdict.is_good() && verdict.to_string().contains("It did not hold."));
    }
}
