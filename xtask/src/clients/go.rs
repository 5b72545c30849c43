//! The official Go SDK and mcp-go, in a module of their own.

use std::process::Command;

use anstream::println;
use anyhow::{Context, Result};
use toolbay_testkit::command;

use super::conversation::EVERYTHING;
use super::folders::Folders;
use super::script::Script;

/// What to do about a Go that is missing or old.
const ADVICE: &str = "install Go 1.25 or newer";

/// Builds the clients. On a machine without Go there are none, and the output says so.
pub(super) fn install(folders: &Folders) -> Result<Vec<Script>> {
    if Command::new("go").arg("version").output().is_err() {
        println!("The Go clients are skipped: there is no Go on this machine ({ADVICE})");
        return Ok(Vec::new());
    }
    let installed = folders.installed.join("go");
    std::fs::create_dir_all(&installed).with_context(|| format!("failed to create {}", installed.display()))?;
    let mut go = Command::new("go");
    go.current_dir(folders.source.join("go")).args(["build", "-mod=readonly", "-o"]).arg(&installed).arg("./...");
    command::run(&mut go).with_context(|| format!("failed to build the Go clients; {ADVICE}"))?;
    let script =
        |client, name| Script { client, program: installed.join(name), args: Vec::new(), conversations: EVERYTHING };
    Ok(vec![script("The official Go SDK", "sdk"), script("mcp-go", "mcpgo")])
}
