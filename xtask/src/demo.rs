//! `cargo xtask demo`: starts the real server on a new folder and demonstrates its main features
//! with a client.

mod attach;
mod narrator;
mod story;

use std::path::PathBuf;
use std::time::Duration;

use anstream::{eprintln, print, println};
use anyhow::Result;
use toolbay_testkit::build::{Builder, Built, Profile, Progress};
use toolbay_testkit::workspace::Workspace;
use toolbay_testkit::{Client, Folder, Program, terminal};

use crate::progress::Shown;
use crate::toolchain;

/// Number of lines of the server's log that are printed after a failed step.
const TAIL: usize = 20;

/// Maximum time for the server to exit after the end of its input.
const GOODBYE: Duration = Duration::from_secs(10);

/// A remark about the first build, which is slow.
const FIRST: &str = "The first build compiles Wasmtime, which takes most of the time.";

/// Builds the server and the plugins, runs the demo, and prints how to connect clients.
pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    println!("{}", terminal::dim("Building the server and the sample plugins. The first time takes a few minutes."));
    let built = build(workspace)?;
    let folder = Folder::make(&Program::new(&built.server), "toolbay-demo-")?;
    let stage = story::Stage::set(&built, &folder)?;
    let mut client = Client::start(&folder)?;
    if let Err(error) = stage.play(&mut client) {
        for line in client.log().tail(TAIL).lines() {
            eprintln!("    {line}");
        }
        return Err(error.context("the demo failed"));
    }
    client.say_goodbye(GOODBYE)?;
    println!("\n{}", terminal::bold("All of it happened just now, on this machine."));
    print!("{}", attach::instructions(&built));
    Ok(())
}

/// Builds only the parts that the demo uses, and shows the progress.
fn build(workspace: &Workspace) -> Result<Built> {
    toolchain::ensure_target(workspace)?;
    let part = |what, remark, work: &dyn Fn(&mut Builder<'_>) -> Result<PathBuf>| {
        let mut shown = Shown::new(what, remark);
        let mut show = |progress: Progress| shown.show(progress);
        let done = work(&mut Builder::watched(workspace, &mut show));
        shown.end();
        done
    };
    Ok(Built {
        server: part("the server", FIRST, &|builder| builder.server(Profile::Dev))?,
        plugins: part("the sample plugins", "", &|builder| builder.samples())?,
        guests: part("the plugin that misbehaves", "", &|builder| builder.guest(story::VILLAIN))?,
    })
}
