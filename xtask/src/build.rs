//! `cargo xtask build`: builds the server, the sample plugins and the guests.

use std::fs;

use anstream::println;
use anyhow::Result;
use toolbay_testkit::build::{BuildOutput, BuildProfile, WorkspaceBuilder, format_kib, wasm_files};
use toolbay_testkit::terminal;
use toolbay_testkit::workspace::CargoWorkspace;

use crate::toolchain;

/// Runs `cargo xtask build`.
pub(crate) fn run(workspace: &CargoWorkspace) -> Result<()> {
    let built = build(workspace)?;
    println!("{}", terminal::bold("Built:"));
    println!("  {}", built.server.display());
    for folder in [&built.plugins, &built.guests] {
        for file in wasm_files(folder)? {
            println!(
                "  {}  {}",
                file.display(),
                terminal::dim(format_kib(fs::metadata(&file)?.len()))
            );
        }
    }
    Ok(())
}

/// Installs the target of plugins if necessary, and builds the server, the sample plugins and the
/// guests.
pub(crate) fn build(workspace: &CargoWorkspace) -> Result<BuildOutput> {
    toolchain::ensure_target(workspace)?;
    WorkspaceBuilder::new(workspace).build_all(BuildProfile::Dev)
}
