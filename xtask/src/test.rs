//! `cargo xtask test`: every test and check, and how many there were.

use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};

use crate::build::{self, Built};
use crate::clients;
use crate::command;
use crate::conformance;
use crate::languages::{self, Beginning, Plan};
use crate::soak;
use crate::steps::{book, deny, rustdoc};
use crate::tally::Tally;
use crate::terminal;
use crate::toolchain::{self, WASM};
use crate::workspace::{HOST, IT, Workspace};

/// Which steps to take.
#[derive(Args)]
pub(crate) struct Options {
    /// Take this step alone; may be repeated
    #[arg(long, value_name = "STEP")]
    only: Vec<Step>,
    /// Leave this step out; may be repeated
    #[arg(long, value_name = "STEP")]
    skip: Vec<Step>,
}

/// One part of the tests, in the order in which they run.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Step {
    /// The code is formatted
    Fmt,
    /// Clippy has nothing to say
    Clippy,
    /// Licences, versions and origins of dependencies are allowed, and no advisory is against them
    Deny,
    /// The reference of every crate is made without a warning
    Rustdoc,
    /// The book is built, and every link leads somewhere
    Book,
    /// The tests of every crate, plugins included
    Unit,
    /// The examples in the documentation
    Doc,
    /// The server as a whole, with sample and hostile plugins
    It,
    /// The official clients against the real server
    Clients,
    /// Plugins in Rust, JavaScript, Python, C and Go, built from their templates and called
    Languages,
    /// The official conformance suite against the real server
    Conformance,
    /// A soak of some seconds; only when named
    Soak,
}

/// How a step ended.
struct Ended {
    name: String,
    tally: Tally,
    took: Duration,
    error: Option<anyhow::Error>,
}

/// `cargo xtask test`.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<ExitCode> {
    let steps: Vec<Step> = Step::value_variants().iter().copied().filter(|step| options.wants(*step)).collect();
    if steps.is_empty() {
        bail!("no step is left to take");
    }
    let mut ended = Vec::new();
    let mut built = None;
    if steps.iter().any(|step| step.needs_build()) {
        ended.push(take("build", |_| {
            built = Some(build::build(workspace)?);
            Ok(())
        }));
    }
    for step in steps {
        if step.needs_build() && built.is_none() {
            continue;
        }
        ended.push(take(step.name(), |tally| step.run(workspace, built.as_ref(), tally)));
    }
    Ok(conclude(&ended))
}

impl Options {
    fn wants(&self, step: Step) -> bool {
        let asked = if self.only.is_empty() { step.is_usual() } else { self.only.contains(&step) };
        asked && !self.skip.contains(&step)
    }
}

impl Step {
    fn name(self) -> &'static str {
        match self {
            Self::Fmt => "fmt",
            Self::Clippy => "clippy",
            Self::Deny => "deny",
            Self::Rustdoc => "rustdoc",
            Self::Book => "book",
            Self::Unit => "unit",
            Self::Doc => "doc",
            Self::It => IT,
            Self::Clients => "clients",
            Self::Languages => "languages",
            Self::Conformance => "conformance",
            Self::Soak => "soak",
        }
    }

    /// Whether the step is taken when none is named. The other takes long.
    fn is_usual(self) -> bool {
        !matches!(self, Self::Soak)
    }

    /// Whether the step uses the server or the plugins as they are built.
    fn needs_build(self) -> bool {
        matches!(self, Self::It | Self::Clients | Self::Languages | Self::Conformance | Self::Soak)
    }

    fn run(self, workspace: &Workspace, built: Option<&Built>, tally: &mut Tally) -> Result<()> {
        match self {
            Self::Fmt => fmt(workspace),
            Self::Clippy => clippy(workspace),
            Self::Deny => deny::run(workspace),
            Self::Rustdoc => rustdoc::run(workspace),
            Self::Book => book::run(workspace),
            Self::Unit => unit(workspace, tally),
            Self::Doc => doc(workspace, tally),
            Self::It => cargo_test(workspace, tally, &["--package", HOST, "--test", IT]),
            Self::Clients => clients::run(workspace, is_built(built)?, tally),
            Self::Languages => {
                let plan = Plan { languages: &languages::TESTED, asked: true, beginning: Beginning::Warm };
                languages::check(workspace, &is_built(built)?.server, plan, tally)
            }
            Self::Conformance => conformance::check(workspace, is_built(built)?, tally),
            Self::Soak => {
                soak::rehearse(is_built(built)?)?;
                tally.passed += 1;
                Ok(())
            }
        }
    }
}

fn is_built(built: Option<&Built>) -> Result<&Built> {
    built.context("nothing is built")
}

fn fmt(workspace: &Workspace) -> Result<()> {
    toolchain::ensure_component(workspace, "rustfmt", "cargo-fmt")?;
    command::run(command::cargo(&workspace.root).args(["fmt", "--all", "--check"]))
}

fn clippy(workspace: &Workspace) -> Result<()> {
    toolchain::ensure_component(workspace, "clippy", "cargo-clippy")?;
    toolchain::ensure_target(workspace)?;
    let lint = |packages: &[&str], more: &[&str]| {
        let mut cargo = command::cargo(&workspace.root);
        cargo.arg("clippy").args(packages).args(more);
        command::run(cargo.args(["--", "-D", "warnings"]))
    };
    // All three, whatever the first says.
    let host = lint(&["--package", HOST], &["--all-targets"]);
    let companions = lint(&companions(workspace), &["--all-targets"]);
    let guests = packages(workspace.guests().map(|guest| guest.name.as_str()));
    let guests = if guests.is_empty() { Ok(()) } else { lint(&guests, &["--target", WASM]) };
    host.and(companions).and(guests)
}

fn unit(workspace: &Workspace, tally: &mut Tally) -> Result<()> {
    let host = cargo_test(workspace, tally, &["--package", HOST, "--lib", "--bins"]);
    let mut args = companions(workspace);
    args.extend(["--lib", "--bins"]);
    for test in workspace.companions().flat_map(|package| &package.tests) {
        args.extend(["--test", test]);
    }
    let companions = cargo_test(workspace, tally, &args);
    host.and(companions)
}

fn doc(workspace: &Workspace, tally: &mut Tally) -> Result<()> {
    let host = cargo_test(workspace, tally, &["--package", HOST, "--doc"]);
    let mut args = companions(workspace);
    args.push("--doc");
    let companions = cargo_test(workspace, tally, &args);
    host.and(companions)
}

/// Selects every native crate but the host. Always apart from it: in one call,
/// cargo would give shared dependencies the features that both want, and
/// compile Wasmtime once more for that.
fn companions(workspace: &Workspace) -> Vec<&str> {
    packages(workspace.companions().map(|package| package.name.as_str()))
}

fn packages<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    names.flat_map(|name| ["--package", name]).collect()
}

fn cargo_test(workspace: &Workspace, tally: &mut Tally, args: &[&str]) -> Result<()> {
    let mut cargo = command::cargo(&workspace.root);
    cargo.args(["test", "--no-fail-fast"]).args(args);
    count(&mut cargo, tally, |line| {
        println!("{line}");
        Tally::of_harness(line)
    })
}

/// Runs a program that tests, and counts with what `read` makes of its lines.
pub(crate) fn count(
    command: &mut Command,
    tally: &mut Tally,
    mut read: impl FnMut(&str) -> Option<Tally>,
) -> Result<()> {
    let before = tally.failed;
    let ok = command::stream(command, |line| *tally += read(line).unwrap_or_default())?;
    if ok {
        Ok(())
    } else if tally.failed > before {
        bail!("{} failed", tally.failed - before)
    } else {
        bail!("it did not come to its end: see above")
    }
}

/// Takes one step, under a heading.
fn take(name: &str, work: impl FnOnce(&mut Tally) -> Result<()>) -> Ended {
    let style = terminal::stdout();
    println!("{}", style.bold(format!("\n==> {name}")));
    let mut tally = Tally::default();
    let begun = Instant::now();
    let error = work(&mut tally).err();
    if error.is_some() && tally.failed == 0 {
        // What fails without a test that does is one thing that failed.
        tally.failed = 1;
    }
    let ended = Ended { name: name.to_owned(), tally, took: begun.elapsed(), error };
    println!("{}", style.bold(format!("<== {}", ended.line())));
    ended
}

impl Ended {
    fn line(&self) -> String {
        let (name, took) = (&self.name, self.took.as_secs_f64());
        let counts = if self.tally == Tally::default() { String::new() } else { format!(", {}", self.tally) };
        match &self.error {
            None => format!("{name}: ok in {took:.1} s{counts}"),
            Some(error) => format!("{name}: FAILED after {took:.1} s{counts}: {error:#}"),
        }
    }
}

/// Says how it all ended.
fn conclude(ended: &[Ended]) -> ExitCode {
    let style = terminal::stdout();
    println!();
    let mut total = Tally::default();
    for step in ended {
        total += step.tally;
        println!("{}", if step.error.is_some() { style.red(step.line()) } else { step.line() });
    }
    println!("\n{total}");
    if total.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_chosen() {
        let options = Options { only: vec![], skip: vec![Step::Clients] };
        assert!(options.wants(Step::Fmt));
        assert!(!options.wants(Step::Clients));
        let options = Options { only: vec![Step::Unit], skip: vec![] };
        assert!(options.wants(Step::Unit));
        assert!(!options.wants(Step::Fmt));
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

    #[test]
    fn a_crash_is_a_failure() {
        let mut tally = Tally::default();
        let mut crash = Command::new("sh");
        crash.args(["-c", "echo 1 passed, 0 failed; exit 3"]);
        assert!(count(&mut crash, &mut tally, Tally::of_line).is_err());
        assert_eq!(tally, Tally { passed: 1, failed: 0 });
    }
}
