//! `cargo xtask dist`: builds and tests the distribution packages with a separate program
//! (`packaging/`).

use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result};
use toolbay_testkit::command;
use toolbay_testkit::workspace::CargoWorkspace;

use crate::program::{self, ProgramArgs};
use crate::tally::TestCounts;
use crate::toolchain;

/// The crate of the program that builds packages.
const PACKAGING_CRATE: &str = "toolbay-packaging";

/// The package formats that the tests install. The other formats require tools that not every
/// machine has. A release tests all formats.
const TESTED_FORMATS: [&str; 5] = ["tar", "npm", "wheel", "deb", "image"];

/// Runs `cargo xtask dist`.
pub(crate) fn run(workspace: &CargoWorkspace, args: &ProgramArgs) -> Result<ExitCode> {
    toolchain::ensure_target(workspace)?;
    program::start(workspace, PACKAGING_CRATE, args.as_slice(), false)
}

/// Packages the server that the tests use, and installs and runs the packages.
pub(crate) fn test(
    workspace: &CargoWorkspace,
    server: &Path,
    tally: &mut TestCounts,
) -> Result<()> {
    // Half of the file is debug information. Compressing it would take longer than all other steps.
    let stripped = workspace.target.join("stripped-server");
    command::run(
        Command::new("strip")
            .arg("--strip-debug")
            .arg("-o")
            .arg(&stripped)
            .arg(server),
    )
    .context("the tests need `strip`, which comes with a C compiler")?;
    let mut cargo = command::cargo(&workspace.root);
    cargo
        .args([
            "run",
            "--quiet",
            "--package",
            PACKAGING_CRATE,
            "--",
            "--test",
            "--binary",
        ])
        .arg(&stripped);
    for format in TESTED_FORMATS {
        cargo.args(["--only", format]);
    }
    tally.run_and_print(&mut cargo)
}
