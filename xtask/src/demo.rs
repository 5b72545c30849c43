//! `cargo xtask demo`: the real server on a new folder, and a client that sees it do what it promises.

mod attach;
mod narrator;
mod story;

use anyhow::{Context, Result};

use crate::build;
use crate::client::Client;
use crate::terminal;
use crate::workspace::Workspace;

/// Lines of the server's log that are shown when a step fails.
const TAIL: usize = 20;

/// Builds what it needs, tells the story, and says how to go on.
pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    println!("{}", terminal::stdout().dim("Building the server and its plugins. The first time takes some minutes."));
    let built = build::build(workspace)?;
    let root = tempfile::Builder::new().prefix("toolbay-demo-").tempdir().context("failed to make a folder")?;
    let stage = story::Stage::set(&built, root.path())?;
    let mut client = Client::start(&built.server, root.path())?;
    if let Err(error) = stage.play(&mut client) {
        for line in client.log_tail(TAIL) {
            eprintln!("    {line}");
        }
        return Err(error.context("the demo did not go as it should"));
    }
    drop(client);
    println!("\n{}", terminal::stdout().bold("All of it happened just now, on this machine."));
    print!("{}", attach::instructions(&built));
    Ok(())
}
