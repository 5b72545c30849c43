//! The workspace's programs that work for minutes: built and started, with the arguments passed on as they are.

use std::ffi::{OsStr, OsString};
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

impl Args {
    /// All of them.
    pub(crate) fn all(&self) -> &[OsString] {
        &self.args
    }

    /// The first one, and those after it.
    pub(crate) fn split(&self) -> (Option<&OsStr>, &[OsString]) {
        self.args.split_first().map_or((None, &[]), |(first, rest)| (Some(first.as_os_str()), rest))
    }

    /// Whether this one is among them.
    pub(crate) fn has(&self, argument: &str) -> bool {
        self.args.iter().any(|other| other == argument)
    }
}

/// Builds and starts the program of a crate, in the profile of the tests. It sets up by itself what else it needs.
pub(crate) fn run(workspace: &Workspace, package: &str, args: &Args) -> Result<ExitCode> {
    start(workspace, package, args.all(), false)
}

/// The same with these arguments, as a release build or not: what measures a release build is one itself, because it may
/// compare the server with its own code.
pub(crate) fn start(workspace: &Workspace, package: &str, args: &[OsString], is_release: bool) -> Result<ExitCode> {
    let mut cargo = command::cargo(&workspace.root);
    cargo.args(["run", "--quiet", "--package", package]);
    if is_release {
        cargo.arg("--release");
    }
    cargo.arg("--").args(args);
    let status = cargo.stdin(Stdio::null()).status().with_context(|| format!("failed to start {package}"))?;
    // Whatever was wrong, the program has said it.
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
