//! A client that uses the official Rust SDK, in a separate project, because its dependencies differ
//! from the server's.

use anyhow::{Context, Result};
use toolbay_testkit::command;

use super::conversation::ClientConversation;
use super::folders::ClientFolders;
use super::script::ClientScript;

/// A session of every revision, which is an option of this client, and automatic negotiation.
const EACH_REVISION: &[ClientConversation] = &[
    ("2024-11-05", "stdio"),
    ("2025-03-26", "stdio"),
    ("2025-06-18", "stdio"),
    ("2025-11-25", "stdio"),
    ("auto", "stdio"),
    ("2024-11-05", "http"),
    ("2025-03-26", "http"),
    ("2025-06-18", "http"),
    ("2025-11-25", "http"),
    ("auto", "http"),
];

/// Builds the client.
pub(super) fn install(folders: &ClientFolders) -> Result<Vec<ClientScript>> {
    let target = folders.installed.join("rust");
    let mut cargo = command::cargo(&folders.source.join("rust"));
    cargo
        .args(["build", "--quiet", "--locked", "--target-dir"])
        .arg(&target);
    command::run(&mut cargo).context("failed to build the Rust client")?;
    Ok(vec![ClientScript {
        client: "The official Rust client",
        program: target.join("debug/client"),
        args: Vec::new(),
        conversations: EACH_REVISION,
    }])
}
