//! Runs steps and records their results.

use std::time::{Duration, Instant};

use anstream::println;
use anyhow::Result;
use toolbay_testkit::terminal;

use crate::tally::Tally;

/// The result of a step.
pub(super) struct Ended {
    pub(super) name: String,
    pub(super) tally: Tally,
    took: Duration,
    pub(super) error: Option<anyhow::Error>,
}

/// Runs a step, and prints a heading and the outcome.
pub(super) fn take(name: &str, work: impl FnOnce(&mut Tally) -> Result<()>) -> Ended {
    println!("{}", terminal::bold(format!("\n==> {name}")));
    let mut tally = Tally::default();
    let begun = Instant::now();
    let error = work(&mut tally).err();
    if error.is_some() && tally.failed == 0 {
        // A failure without a failed test counts as one.
        tally.failed = 1;
    }
    let ended = Ended { name: name.to_owned(), tally, took: begun.elapsed(), error };
    println!("{}", terminal::bold(format!("<== {}", ended.line())));
    ended
}

impl Ended {
    /// Formats the outcome in one line.
    pub(super) fn line(&self) -> String {
        let (name, took) = (&self.name, self.took.as_secs_f64());
        let counts = if self.tally == Tally::default() { String::new() } else { format!(", {}", self.tally) };
        match &self.error {
            None => format!("{name}: ok in {took:.1} s{counts}"),
            Some(error) => format!("{name}: FAILED after {took:.1} s{counts}: {error:#}"),
        }
    }
}
