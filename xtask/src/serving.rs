//! Starts the real server over HTTP, for third-party clients.

use std::path::Path;
use std::process::Command;

use anyhow::Result;
use toolbay_testkit::HttpServerProcess;
use toolbay_testkit::command;

/// Compiles the plugins of a folder into the compile cache under `root`, so that servers load them
/// faster.
pub(crate) fn compile_plugins(program: &Path, plugins: &Path, root: &Path) -> Result<()> {
    let mut compile = Command::new(program);
    compile
        .args(["compile", "--plugins"])
        .arg(plugins)
        .env("XDG_CACHE_HOME", root.join("cache"));
    command::output(&mut compile).map(drop)
}

/// Starts `program` on a folder, with every HTTP transport and the compile cache under `root`.
/// Dropping the listener kills the server.
pub(crate) fn start(program: &Path, plugins: &Path, root: &Path) -> Result<HttpServerProcess> {
    start_with(program, plugins, root, |_| {})
}

/// Like [`start`], after `change` has modified the command.
pub(crate) fn start_with(
    program: &Path,
    plugins: &Path,
    root: &Path,
    change: impl FnOnce(&mut Command),
) -> Result<HttpServerProcess> {
    let mut command = Command::new(program);
    command
        .args(["serve", "--http", "127.0.0.1:0", "--sse", "--plugins"])
        .arg(plugins);
    command.env("XDG_CACHE_HOME", root.join("cache"));
    change(&mut command);
    HttpServerProcess::start(command)
}
