//! Runs steps and records their results.

use std::time::{Duration, Instant};

use anstream::println;
use anyhow::Result;
use toolbay_testkit::terminal;

use crate::tally::TestCounts;

/// The result of a step.
pub(super) struct StepResult {
    pub(super) name: String,
    pub(super) tally: TestCounts,
    elapsed: Duration,
    pub(super) error: Option<anyhow::Error>,
}

/// Runs a step, and prints a heading and the outcome.
pub(super) fn run_step(name: &str, work: impl FnOnce(&mut TestCounts) -> Result<()>) -> StepResult {
    println!("{}", terminal::bold(format!("\n==> {name}")));
    let mut tally = TestCounts::default();
    let begun = Instant::now();
    let error = work(&mut tally).err();
    if error.is_some() && tally.failed == 0 {
        // A failure without a failed test counts as one.
        tally.failed = 1;
    }
    let ended = StepResult {
        name: name.to_owned(),
        tally,
        elapsed: begun.elapsed(),
        error,
    };
    println!(
        "{}",
        terminal::bold(format!("<== {}", ended.summary_line()))
    );
    ended
}

impl StepResult {
    /// Formats the outcome in one line.
    pub(super) fn summary_line(&self) -> String {
        let name = &self.name;
        let took = self.elapsed.as_secs_f64();
        let counts = if self.tally == TestCounts::default() {
            String::new()
        } else {
            format!(", {}", self.tally)
        };
        match &self.error {
            None => format!("{name}: ok in {took:.1} s{counts}"),
            Some(error) => format!("{name}: FAILED after {took:.1} s{counts}: {error:#}"),
        }
    }
}
