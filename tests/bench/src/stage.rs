//! The content of the folder of the measured server.

use std::fs;

use anyhow::{Context, Result};
use toolbay_testkit::build::BuildOutput;
use toolbay_testkit::{DEADLINE, ServerProgram, SharedConnection, TestFolder};

/// The fuel of `spin` in the plugin `budget`: enough for some ten milliseconds.
pub(crate) const FUEL: u64 = 200_000_000;

/// The deadline of all tools in the plugin `late`, in milliseconds.
pub(crate) const DEADLINE_MS: u64 = 100;

/// The maximum limits, for guests that must not end by themselves.
const ENDLESS: &str = "fuel = 1_000_000_000_000\ntimeout = \"10m\"\n";

/// Returns the plugins: their IDs, their guests, and their limits.
fn plugins() -> [(&'static str, &'static str, String); 5] {
    [
        ("light", "hostile", String::new()),
        ("burner", "restless", ENDLESS.to_owned()),
        ("alone", "restless", format!("concurrency = 1\n{ENDLESS}")),
        (
            "budget",
            "restless",
            format!("{ENDLESS}\n[tools.spin.limits]\nfuel = {FUEL}\n"),
        ),
        (
            "late",
            "restless",
            format!("fuel = 1_000_000_000_000\ntimeout = \"{DEADLINE_MS}ms\"\n"),
        ),
    ]
}

/// A folder for a server, with its plugins.
pub(crate) struct Stage {
    pub(crate) folder: TestFolder,
}

impl Stage {
    /// Creates the folder.
    pub(crate) fn set(built: &BuildOutput) -> Result<Self> {
        let root = TestFolder::create(&ServerProgram::new(&built.server), "toolbay-bench-")?;
        let folder = root.plugin_folder();
        for (id, guest, limits) in plugins() {
            let from = built.guests.join(guest).with_extension("wasm");
            let to = folder.join(id).with_extension("wasm");
            fs::copy(&from, &to).with_context(|| {
                format!("failed to copy {} to {}", from.display(), to.display())
            })?;
            fs::write(
                folder.join(id).with_extension("toml"),
                format!("prefix = \"{id}\"\n\n[limits]\n{limits}"),
            )
            .with_context(|| format!("failed to write the grant of {id}"))?;
        }
        Ok(Self { folder: root })
    }
}

/// Waits until all plugins in the folder are loaded.
pub(crate) fn all_listed(connection: &SharedConnection) -> Result<()> {
    let loaded =
        |tools: &[String], id: &str| tools.iter().any(|tool| tool.starts_with(&format!("{id}_")));
    connection
        .wait_until_listed(DEADLINE, |tools| {
            plugins().iter().all(|(id, ..)| loaded(tools, id))
        })
        .map(drop)
}
