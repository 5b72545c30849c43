//! `cargo xtask demo`: the real server on a new folder, and a client that sees it do what it promises.

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

/// Lines of the server's log that are shown when a step fails.
const TAIL: usize = 20;

/// How long the server may take to end once its input has.
const GOODBYE: Duration = Duration::from_secs(10);

/// What somebody who waits for the first build should know.
const FIRST: &str = "The first build compiles Wasmtime, which takes most of the time.";

/// Builds what it needs, tells the story, and says how to go on.
pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    println!("{}", terminal::dim("Building the server and the sample plugins. The first time takes some minutes."));
    let built = build(workspace)?;
    let folder = Folder::make(&Program::new(&built.server), "toolbay-demo-")?;
    let stage = story::Stage::set(&built, &folder)?;
    let mut client = Client::start(&folder)?;
    if let Err(error) = stage.play(&mut client) {
        for line in client.log().tail(TAIL).lines() {
            eprintln!("    {line}");
        }
        return Err(error.context("the demo did not go as it should"));
    }
    client.say_goodbye(GOODBYE)?;
    println!("\n{}", terminal::bold("All of it happened just now, on this machine."));
    print!("{}", attach::instructions(&built));
    Ok(())
}

/// Builds what the story needs and nothing else, and shows how far that is.
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
