//! Builds and starts the workspace's long-running programs, and passes the arguments on unchanged.

use std::ffi::{OsStr, OsString};
use std::process::{ExitCode, Stdio};

use anyhow::{Context, Result};
use toolbay_testkit::command;
use toolbay_testkit::workspace::CargoWorkspace;

/// What the program is given.
#[derive(clap::Args)]
pub(crate) struct ProgramArgs {
    /// The program's own arguments; --help lists them
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "ARGUMENT"
    )]
    args: Vec<OsString>,
}

impl ProgramArgs {
    /// Returns all arguments.
    pub(crate) fn as_slice(&self) -> &[OsString] {
        &self.args
    }

    /// Returns the first argument and the remaining ones.
    pub(crate) fn split_first(&self) -> (Option<&OsStr>, &[OsString]) {
        self.args
            .split_first()
            .map_or((None, &[]), |(first, rest)| (Some(first.as_os_str()), rest))
    }

    /// Returns whether the arguments contain `argument`.
    pub(crate) fn contains(&self, argument: &str) -> bool {
        self.args.iter().any(|other| other == argument)
    }
}

/// Builds and starts the program of a crate, in the dev profile. The program sets up everything
/// else that it requires.
pub(crate) fn run(
    workspace: &CargoWorkspace,
    package: &str,
    args: &ProgramArgs,
) -> Result<ExitCode> {
    start(workspace, package, args.as_slice(), false)
}

/// Like [`run`], but can use the release profile. A program that measures a release build must be a
/// release build itself, because it may compare the server with its own code.
pub(crate) fn start(
    workspace: &CargoWorkspace,
    package: &str,
    args: &[OsString],
    is_release: bool,
) -> Result<ExitCode> {
    let mut cargo = command::cargo(&workspace.root);
    cargo.args(["run", "--quiet", "--package", package]);
    if is_release {
        cargo.arg("--release");
    }
    cargo.arg("--").args(args);
    let status = cargo
        .stdin(Stdio::null())
        .status()
        .with_context(|| format!("failed to start {package}"))?;
    // The program has printed any error.
    Ok(if status.success() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
