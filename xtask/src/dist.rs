//! The packages that people install: made, and tried, by a program of their own (`packaging/`).

use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result};
use toolbay_testkit::command;
use toolbay_testkit::workspace::Workspace;

use crate::program::{self, Args};
use crate::tally::Tally;
use crate::toolchain;

/// The program that makes packages.
const PACKAGE: &str = "toolbay-packaging";

/// The formats that the tests install. The others need tools that not every machine has; a release tries them all.
const TESTED: [&str; 5] = ["tar", "npm", "wheel", "deb", "image"];

/// `cargo xtask dist`.
pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<ExitCode> {
    toolchain::ensure_target(workspace)?;
    program::start(workspace, PACKAGE, args.all(), false)
}

/// Packages the server of the tests, and installs and uses the packages.
pub(crate) fn test(workspace: &Workspace, server: &Path, tally: &mut Tally) -> Result<()> {
    // Half of it is for debuggers, and compressing that takes longer than everything else.
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
