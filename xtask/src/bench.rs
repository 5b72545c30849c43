//! `cargo xtask bench`: selects and starts the program that runs a benchmark.

use std::ffi::OsStr;
use std::process::{ExitCode, Stdio};

use anyhow::{Context, Result};
use toolbay_testkit::command;
use toolbay_testkit::workspace::CargoWorkspace;

use crate::program::{self, ProgramArgs};

/// The benchmarks that always use a release build, even without `--release`.
const RELEASE_BENCHMARKS: [&str; 3] = ["peers", "curves", "--quick"];

/// Starts the program that runs the benchmark in the first argument.
pub(crate) fn run(workspace: &CargoWorkspace, args: &ProgramArgs) -> Result<ExitCode> {
    let (first, rest) = args.split_first();
    match first.and_then(OsStr::to_str) {
        Some("metering") => program::start(workspace, "toolbay-inside", rest, true),
        Some("parts") => {
            let mut cargo = command::cargo(&workspace.root);
            cargo.env("CRITERION_HOME", workspace.target.join("criterion"));
            cargo
                .args([
                    "bench",
                    "--quiet",
                    "--package",
                    "toolbay-inside",
                    "--bench",
                    "parts",
                    "--",
                ])
                .args(rest);
            let status = cargo
                .stdin(Stdio::null())
                .status()
                .context("failed to start cargo")?;
            Ok(if status.success() {
                ExitCode::SUCCESS
            } else {
                ExitCode::FAILURE
            })
        }
        first => {
            let is_release = first.is_some_and(|first| RELEASE_BENCHMARKS.contains(&first))
                || args.contains("--release");
            program::start(workspace, "toolbay-bench", args.as_slice(), is_release)
        }
    }
}
