//! Native programs for comparison. They are in a separate workspace, so that their dependencies
//! stay separate from the server's.

use std::path::PathBuf;

use anyhow::{Context, Result};
use toolbay_testkit::command;
use toolbay_testkit::workspace::CargoWorkspace;

/// The MCP server on the official Rust SDK.
pub(crate) const SERVER: &str = "native-peer";

/// The HTTP client, which requests a page for each line of its input.
pub(crate) const CLIENT: &str = "native-client";

/// The directory of their workspace, relative to this one.
pub(crate) const SOURCE: &str = "tests/bench/peers/native";

/// Builds the programs and returns their directory.
pub(crate) fn build(workspace: &CargoWorkspace) -> Result<PathBuf> {
    let target = workspace.target.join("peers/native");
    let mut cargo = command::cargo(&workspace.root.join(SOURCE));
    cargo
        .args(["build", "--release", "--quiet", "--locked", "--target-dir"])
        .arg(&target);
    command::run(&mut cargo)
        .context("native programs cannot be built; they need crates.io once")?;
    Ok(target.join("release"))
}
