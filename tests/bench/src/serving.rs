//! Folders for the servers that are measured, and how these are started.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use toolbay_testkit::{Folder, Program, Toolbay};

/// Bounds that no measurement may reach: of a result, of the prompts in a folder, of how often one may call over HTTP, and
/// of what one address may take. Everything else is as it is by default.
const CONFIG: &str = "\
log = \"error\"

[limits]
output = \"4MiB\"

[describe]
prompts = 8192

[rate_limit]
calls = 1_000_000
per = \"1s\"

[client_rate_limit]
calls = 1_000_000
per = \"1s\"

[http]
connections = 2048
address_connections = 2048
caller_requests = 2048
sessions = 4096
caller_sessions = 4096
address_sessions = 4096
";

/// An empty folder, with the configuration.
pub(crate) fn folder(server: &Path) -> Result<Folder> {
    let folder = Folder::make(&Program::new(server), "toolbay-bench-")?;
    fs::write(folder.beside("toolbay.toml"), CONFIG).context("failed to write the configuration")?;
    Ok(folder)
}

/// A folder with one plugin.
pub(crate) fn with_plugin(server: &Path, plugin: &Path) -> Result<Folder> {
    let folder = folder(server)?;
    let name = plugin.file_name().context("a plugin without a name")?;
    fs::copy(plugin, folder.plugins().join(name)).with_context(|| format!("failed to copy {}", plugin.display()))?;
    Ok(folder)
}

/// The command that serves a folder.
pub(crate) fn start(folder: &Folder, address: Option<SocketAddr>) -> Command {
    let toolbay = Toolbay::new(folder).args(["serve"]);
    let toolbay = match address {
        Some(address) => toolbay.args(["--http".to_owned(), address.to_string()]),
        None => toolbay,
    };
    toolbay.into_parts().0
}
