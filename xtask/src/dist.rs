//! `cargo xtask dist`: builds and tests the distribution packages with a separate program
//! (`packaging/`).

use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result};
use toolbay_testkit::command;
use toolbay_testkit::workspace::Workspace;

use crate::program::{self, Args};
use crate::tally::Tally;
use crate::toolchain;

/// The crate of the program that builds packages.
const PACKAGE: &str = "toolbay-packaging";

/// The package formats that the tests install. The other formats require tools that not every
/// machine has. A release tests all formats.
const TESTED: [&str; 5] = ["tar", "npm", "wheel", "deb", "image"];

/// Runs `cargo xtask dist`.
pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<ExitCode> {
    toolchain::ensure_target(workspace)?;
    program::start(workspace, PACKAGE, args.all(), false)
}

/// Packages the server that the tests use, and installs and runs the packages.
pub(crate) fn test(workspace: &Workspace, server: &Path, tally: &mut Tally) -> Result<()> {
    // Half of the file is debug information. Compressing it would take longer than all other steps.
    let stripped = workspace.target.join("stripped-server");
    command::run(Command::new("strip").arg("--strip-debug").arg("-o").arg(&stripped).arg(server))
        .context("the tests need `strip`, which comes with a C compiler")?;
    let mut cargo = command::cargo(&workspace.root);
    cargo.args(["run", "--quiet", "--package", PACKAGE, "--", "--test", "--binary"]).arg(&stripped);
    for format in TESTED {
        cargo.args(["--only", format]);
    }
    tally.count_lines(&mut cargo)
}
