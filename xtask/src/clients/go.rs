//! Clients that use the official Go SDK and mcp-go, in a separate Go module.

use std::process::Command;

use anstream::println;
use anyhow::{Context, Result};
use toolbay_testkit::command;

use super::conversation::BOTH_ERAS_AND_SSE;
use super::folders::ClientFolders;
use super::script::ClientScript;

/// Advice for the user if Go is missing or too old.
const GO_ADVICE: &str = "install Go 1.25 or newer";

/// Builds the clients. On a machine without Go, prints that they are skipped and returns none.
pub(super) fn install(folders: &ClientFolders) -> Result<Vec<ClientScript>> {
    if Command::new("go").arg("version").output().is_err() {
        println!("The Go clients are skipped: there is no Go on this machine ({GO_ADVICE})");
        return Ok(Vec::new());
    }
    let installed = folders.installed.join("go");
    std::fs::create_dir_all(&installed)
        .with_context(|| format!("failed to create {}", installed.display()))?;
    let mut go = Command::new("go");
    go.current_dir(folders.source.join("go"))
        .args(["build", "-mod=readonly", "-o"])
        .arg(&installed)
        .arg("./...");
    command::run(&mut go)
        .with_context(|| format!("failed to build the Go clients; {GO_ADVICE}"))?;
    let script = |client, name| ClientScript {
        client,
        program: installed.join(name),
        args: Vec::new(),
        conversations: BOTH_ERAS_AND_SSE,
    };
    Ok(vec![
        script("The official Go SDK", "sdk"),
        script("mcp-go", "mcpgo"),
    ])
}
