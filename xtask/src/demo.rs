//! `cargo xtask demo`: starts the real server on a new folder and demonstrates its main features
//! with a client.

mod attach;
mod narrator;
mod story;

use std::path::PathBuf;
use std::time::Duration;

use anstream::{eprintln, print, println};
use anyhow::Result;
use toolbay_testkit::build::{BuildOutput, BuildProfile, BuildProgress, WorkspaceBuilder};
use toolbay_testkit::workspace::CargoWorkspace;
use toolbay_testkit::{ServerProgram, StdioClient, TestFolder, terminal};

use crate::progress::BuildProgressDisplay;
use crate::toolchain;

/// Number of lines of the server's log that are printed after a failed step.
const LOG_TAIL_LINES: usize = 20;

/// Maximum time for the server to exit after the end of its input.
const EXIT_TIMEOUT: Duration = Duration::from_secs(10);

/// A remark about the first build, which is slow.
const FIRST_BUILD_REMARK: &str = "The first build compiles Wasmtime, which takes most of the time.";

/// Builds the server and the plugins, runs the demo, and prints how to connect clients.
pub(crate) fn run(workspace: &CargoWorkspace) -> Result<()> {
    println!(
        "{}",
        terminal::dim(
            "Building the server and the sample plugins. The first time takes a few minutes."
        )
    );
    let built = build(workspace)?;
    let folder = TestFolder::create(&ServerProgram::new(&built.server), "toolbay-demo-")?;
    let stage = story::DemoScenario::prepare(&built, &folder)?;
    let mut client = StdioClient::start(&folder)?;
    if let Err(error) = stage.run(&mut client) {
        for line in client.log().tail(LOG_TAIL_LINES).lines() {
            eprintln!("    {line}");
        }
        return Err(error.context("the demo failed"));
    }
    client.stop_within(EXIT_TIMEOUT)?;
    println!(
        "\n{}",
        terminal::bold("All of it happened just now, on this machine.")
    );
    print!("{}", attach::instructions(&built));
    Ok(())
}

/// Builds only the parts that the demo uses, and shows the progress.
fn build(workspace: &CargoWorkspace) -> Result<BuildOutput> {
    toolchain::ensure_target(workspace)?;
    let part = |what, remark, work: &dyn Fn(&mut WorkspaceBuilder<'_>) -> Result<PathBuf>| {
        let mut shown = BuildProgressDisplay::new(what, remark);
        let mut show = |progress: BuildProgress| shown.update(progress);
        let done = work(&mut WorkspaceBuilder::with_progress(workspace, &mut show));
        shown.clear();
        done
    };
    Ok(BuildOutput {
        server: part("the server", FIRST_BUILD_REMARK, &|builder| {
            builder.build_server(BuildProfile::Dev)
        })?,
        plugins: part("the sample plugins", "", &|builder| builder.build_samples())?,
        guests: part("the plugin that misbehaves", "", &|builder| {
            builder.build_guest(story::HOSTILE_PLUGIN)
        })?,
    })
}
