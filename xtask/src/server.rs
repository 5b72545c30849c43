//! How a real server is started: the same way for everybody here who talks to one.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

/// The plugin folder in a server's own.
pub(crate) const PLUGINS: &str = "plugins";

/// `toolbay serve` in the folder `root` on the plugins in `root/plugins`, with its three streams piped.
/// It reads `root/toolbay.toml` if that is there.
pub(crate) fn command(server: &Path, root: &Path) -> Command {
    let mut command = Command::new(server);
    command.args(["serve", "--plugins"]).arg(root.join(PLUGINS));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // Somebody's own configuration must not change what is seen, nor may
    // anything be had that was compiled before.
    command.current_dir(root).env("XDG_CACHE_HOME", root.join("cache"));
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("TOOLBAY_")) {
        command.env_remove(name);
    }
    command
}

/// The parameters of `initialize`.
pub(crate) fn hello(name: &str) -> Value {
    let client = json!({"name": name, "version": env!("CARGO_PKG_VERSION")});
    json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client})
}
