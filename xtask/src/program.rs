//! The workspace's programs that work for minutes: built and started, with the arguments passed on as they are.

use std::ffi::OsString;
use std::process::{ExitCode, Stdio};

use anyhow::{Context, Result};
use toolbay_testkit::command;
use toolbay_testkit::workspace::Workspace;

/// What the program is given.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The program's own arguments; --help lists them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENT")]
    args: Vec<OsString>,
}

/// Builds and starts the program of a crate. It sets up by itself what else it needs.
pub(crate) fn run(workspace: &Workspace, package: &str, args: &Args) -> Result<ExitCode> {
    let mut cargo = command::cargo(&workspace.root);
    cargo.args(["run", "--quiet", "--package", package]);
    // What measures a release build is one itself: it may compare the server with its own code.
    if args.args.iter().any(|argument| argument == "--release") {
        cargo.arg("--release");
    }
    cargo.arg("--").args(&args.args);
    let status = cargo.stdin(Stdio::null()).status().with_context(|| format!("failed to start {package}"))?;
    // Whatever was wrong, the program has said it.
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
