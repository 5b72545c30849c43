//! What is in the folder while the server is measured.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;

use crate::build::Built;
use crate::connection::{Connection, PATIENCE};
use crate::server::PLUGINS;

/// The fuel of `spin` in the plugin `budget`: some ten milliseconds.
pub(super) const FUEL: u64 = 200_000_000;

/// The deadline of everything in the plugin `late`, in milliseconds.
pub(super) const DEADLINE_MS: u64 = 100;

/// All that may be granted: for what must not end by itself.
const ENDLESS: &str = "fuel = 1_000_000_000_000\ntimeout = \"10m\"\n";

/// The plugins: their ids, the guests that they are, and their limits.
fn plugins() -> [(&'static str, &'static str, String); 5] {
    [
        ("light", "hostile", String::new()),
        ("burner", "restless", ENDLESS.to_owned()),
        ("alone", "restless", format!("concurrency = 1\n{ENDLESS}")),
        ("budget", "restless", format!("{ENDLESS}\n[tools.spin.limits]\nfuel = {FUEL}\n")),
        ("late", "restless", format!("fuel = 1_000_000_000_000\ntimeout = \"{DEADLINE_MS}ms\"\n")),
    ]
}

/// A folder for a server, and what belongs to it.
pub(super) struct Stage {
    root: TempDir,
    pub(super) server: PathBuf,
}

impl Stage {
    /// Makes the folder.
    pub(super) fn set(built: &Built) -> Result<Self> {
        let root = tempfile::Builder::new().prefix("toolbay-bench-").tempdir().context("failed to make a folder")?;
        let folder = root.path().join(PLUGINS);
        fs::create_dir(&folder).with_context(|| format!("failed to create {}", folder.display()))?;
        for (id, guest, limits) in plugins() {
            let from = built.guests.join(guest).with_extension("wasm");
            let to = folder.join(id).with_extension("wasm");
            fs::copy(&from, &to).with_context(|| format!("failed to copy {} to {}", from.display(), to.display()))?;
            fs::write(folder.join(id).with_extension("toml"), format!("prefix = \"{id}\"\n\n[limits]\n{limits}"))
                .with_context(|| format!("failed to write the grant of {id}"))?;
        }
        Ok(Self { root, server: built.server.clone() })
    }

    /// The folder in which the server is started.
    pub(super) fn root(&self) -> &Path {
        self.root.path()
    }
}

/// Waits until everything that is in the folder has been loaded.
pub(super) fn all_listed(connection: &Connection) -> Result<()> {
    let mailbox = connection.mailbox();
    loop {
        let seen = connection.listings().read(|times| *times);
        let tools = mailbox.tools()?;
        let loaded = |id: &str| tools.iter().any(|tool| tool.starts_with(&format!("{id}.")));
        if plugins().iter().all(|(id, ..)| loaded(id)) {
            return Ok(());
        }
        ensure!(connection.listings().wait_until(PATIENCE, |times| *times > seen), "not everything was loaded");
    }
}
