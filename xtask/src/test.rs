//! `cargo xtask test`: runs every test and check, and counts them.

mod book;
mod clippy;
mod context;
mod deny;
mod doc;
mod ended;
mod features;
mod fmt;
mod hostcalls;
mod it;
mod lanes;
mod rustdoc;
mod select;
mod soak;
mod steps;
mod tools;
mod unit;

use std::process::ExitCode;

use anstream::println;
use anyhow::{Result, bail};
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser as _};
use toolbay_testkit::terminal;
use toolbay_testkit::workspace::Workspace;

use self::context::Context;
use self::ended::{Ended, take};
use self::steps::{STEPS, Step};
use crate::build;
use crate::tally::Tally;

/// The steps to run.
#[derive(Args)]
pub(crate) struct Options {
    /// Run only this step; may be repeated
    #[arg(long, value_name = "STEP", value_parser = step())]
    only: Vec<String>,
    /// Skip this step; may be repeated
    #[arg(long, value_name = "STEP", value_parser = step())]
    skip: Vec<String>,
}

/// Runs `cargo xtask test`.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<ExitCode> {
    let steps: Vec<&Step> = STEPS.iter().filter(|step| options.wants(step)).collect();
    if steps.is_empty() {
        bail!("no step is left to take");
    }
    let mut ended = Vec::new();
    let mut built = None;
    if steps.iter().any(|step| step.needs_build) {
        ended.push(take("build", |_| {
            built = Some(build::build(workspace)?);
            Ok(())
        }));
    }
    let (of_build, of_sources): (Vec<&Step>, Vec<&Step>) = steps.into_iter().partition(|step| step.needs_build);
    let mut run = |step: &Step| {
        ended.push(take(step.name, |tally| (step.run)(&mut Context { workspace, built: built.as_ref(), tally })));
    };
    of_sources.into_iter().for_each(&mut run);
    match &of_build[..] {
        _ if built.is_none() => {}
        [only] => run(only),
        several => ended.extend(lanes::run(several)),
    }
    Ok(conclude(&ended))
}

/// Returns a parser that accepts the name of a step.
fn step() -> impl clap::builder::TypedValueParser<Value = String> {
    let names = STEPS.iter().map(|step| PossibleValue::new(step.name).help(step.about));
    PossibleValuesParser::new(names).map(|name| name)
}

impl Options {
    fn wants(&self, step: &Step) -> bool {
        let named = |steps: &[String]| steps.iter().any(|name| name == step.name);
        let asked = if self.only.is_empty() { step.is_usual } else { named(&self.only) };
        asked && !named(&self.skip)
    }
}

/// Prints the outcome of all steps and returns the exit code.
fn conclude(ended: &[Ended]) -> ExitCode {
    println!();
    let mut total = Tally::default();
    for step in ended {
        total += step.tally;
        if step.error.is_some() {
            println!("{}", terminal::red(step.line()));
        } else {
            println!("{}", step.line());
        }
    }
    println!("\n{total}");
    if total.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str) -> &'static Step {
        STEPS.iter().find(|step| step.name == name).unwrap()
    }

    #[test]
    fn steps_are_chosen() {
        let options = Options { only: vec![], skip: vec!["clients".to_owned()] };
        assert!(options.wants(named("fmt")) && !options.wants(named("clients")) && !options.wants(named("soak")));
        let options = Options { only: vec!["unit".to_owned(), "soak".to_owned()], skip: vec![] };
        assert!(options.wants(named("unit")) && options.wants(named("soak")) && !options.wants(named("fmt")));
    }

    #[test]
    fn a_step_that_fails_without_a_test_counts_as_one() {
        let ended = take("no such thing", |_| bail!("no"));
        assert_eq!(ended.tally, Tally { passed: 0, failed: 1 });
        let ended = take("some tests", |tally| {
            *tally += Tally { passed: 3, failed: 2 };
            bail!("2 failed")
        });
        assert_eq!(ended.tally, Tally { passed: 3, failed: 2 });
        assert!(ended.line().starts_with("some tests: FAILED after 0.0 s, 3 passed, 2 failed: 2 failed"));
    }
}
