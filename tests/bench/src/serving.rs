//! Folders for the measured servers, and the commands that start them.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use toolbay_testkit::{ServerProgram, TestFolder, ToolbayCommand};

/// Raises limits that no measurement may reach: the size of a result, the number of prompts in a
/// folder, the rate of calls over HTTP, and the resources of one address. All other settings have
/// their defaults.
const CONFIG: &str = "\
log = \"error\"

[limits]
output = \"4MiB\"

[describe]
prompts = 8192

[rate_limit]
calls = 1_000_000
per = \"1s\"

[caller_rate_limit]
calls = 1_000_000
per = \"1s\"

[http]
connections = 2048
connections_per_address = 2048
requests_per_caller = 2048
sessions = 4096
sessions_per_caller = 4096
sessions_per_address = 4096
";

/// Creates an empty folder with the configuration.
pub(crate) fn folder(server: &Path) -> Result<TestFolder> {
    let folder = TestFolder::create(&ServerProgram::new(server), "toolbay-bench-")?;
    fs::write(folder.sibling_path("toolbay.toml"), CONFIG)
        .context("failed to write the configuration")?;
    Ok(folder)
}

/// Creates a folder with one plugin.
pub(crate) fn with_plugin(server: &Path, plugin: &Path) -> Result<TestFolder> {
    let folder = folder(server)?;
    let name = plugin.file_name().context("a plugin without a name")?;
    fs::copy(plugin, folder.plugin_folder().join(name))
        .with_context(|| format!("failed to copy {}", plugin.display()))?;
    Ok(folder)
}

/// Returns the command that serves a folder.
pub(crate) fn start(folder: &TestFolder, address: Option<SocketAddr>) -> Command {
    let toolbay = ToolbayCommand::new(folder).args(["serve"]);
    let toolbay = match address {
        Some(address) => toolbay.args(["--http".to_owned(), address.to_string()]),
        None => toolbay,
    };
    toolbay.into_parts().0
}
