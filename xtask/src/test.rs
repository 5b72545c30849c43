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
mod prose;
mod registry;
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
use toolbay_testkit::workspace::CargoWorkspace;

use self::context::StepContext;
use self::ended::{StepResult, run_step};
use self::steps::{STEPS, TestStep};
use crate::build;
use crate::tally::TestCounts;

/// The steps to run.
#[derive(Args)]
pub(crate) struct TestOptions {
    /// Run only this step; may be repeated
    #[arg(long, value_name = "STEP", value_parser = step_name_parser())]
    only: Vec<String>,
    /// Skip this step; may be repeated
    #[arg(long, value_name = "STEP", value_parser = step_name_parser())]
    skip: Vec<String>,
}

/// Runs `cargo xtask test`.
pub(crate) fn run(workspace: &CargoWorkspace, options: &TestOptions) -> Result<ExitCode> {
    let steps: Vec<&TestStep> = STEPS.iter().filter(|step| options.selects(step)).collect();
    if steps.is_empty() {
        bail!("no step is left to take");
    }
    let mut ended = Vec::new();
    let mut built = None;
    if steps.iter().any(|step| step.needs_build) {
        ended.push(run_step("build", |_| {
            built = Some(build::build(workspace)?);
            Ok(())
        }));
    }
    let (of_build, of_sources): (Vec<&TestStep>, Vec<&TestStep>) =
        steps.into_iter().partition(|step| step.needs_build);
    let mut run = |step: &TestStep| {
        ended.push(run_step(step.name, |tally| {
            (step.run)(&mut StepContext {
                workspace,
                built: built.as_ref(),
                tally,
            })
        }));
    };
    of_sources.into_iter().for_each(&mut run);
    match &of_build[..] {
        _ if built.is_none() => {}
        [only] => run(only),
        several => ended.extend(lanes::run_steps(several)),
    }
    Ok(print_results(&ended))
}

/// Returns a parser that accepts the name of a step.
fn step_name_parser() -> impl clap::builder::TypedValueParser<Value = String> {
    let names = STEPS
        .iter()
        .map(|step| PossibleValue::new(step.name).help(step.about));
    PossibleValuesParser::new(names).map(|name| name)
}

impl TestOptions {
    fn selects(&self, step: &TestStep) -> bool {
        let named = |steps: &[String]| steps.iter().any(|name| name == step.name);
        let asked = if self.only.is_empty() {
            step.runs_by_default
        } else {
            named(&self.only)
        };
        asked && !named(&self.skip)
    }
}

/// Prints the outcome of all steps and returns the exit code.
fn print_results(ended: &[StepResult]) -> ExitCode {
    println!();
    let mut total = TestCounts::default();
    for step in ended {
        total += step.tally;
        if step.error.is_some() {
            println!("{}", terminal::red(step.summary_line()));
        } else {
            println!("{}", step.summary_line());
        }
    }
    println!("\n{total}");
    if total.failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str) -> &'static TestStep {
        STEPS.iter().find(|step| step.name == name).unwrap()
    }

    #[test]
    fn steps_are_chosen() {
        let options = TestOptions {
            only: vec![],
            skip: vec!["clients".to_owned()],
        };
        assert!(
            options.selects(named("fmt"))
                && !options.selects(named("clients"))
                && !options.selects(named("soak"))
        );
        let options = TestOptions {
            only: vec!["unit".to_owned(), "soak".to_owned()],
            skip: vec![],
        };
        assert!(
            options.selects(named("unit"))
                && options.selects(named("soak"))
                && !options.selects(named("fmt"))
        );
    }

    #[test]
    fn a_step_that_fails_without_a_test_counts_as_one() {
        let ended = run_step("no such thing", |_| bail!("no"));
        assert_eq!(
            ended.tally,
            TestCounts {
                passed: 0,
                failed: 1
            }
        );
        let ended = run_step("some tests", |tally| {
            *tally += TestCounts {
                passed: 3,
                failed: 2,
            };
            bail!("2 failed")
        });
        assert_eq!(
            ended.tally,
            TestCounts {
                passed: 3,
                failed: 2
            }
        );
        assert!(
            ended
                .summary_line()
                .starts_with("some tests: FAILED after 0.0 s, 3 passed, 2 failed: 2 failed")
        );
    }
}
