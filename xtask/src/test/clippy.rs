//! Runs Clippy. Fails if it reports a warning.

use anyhow::Result;
use toolbay_testkit::build::WASM;
use toolbay_testkit::command;

use super::context::Context;
use super::select::{natives, packages};
use crate::toolchain;

pub(super) fn run(context: &mut Context<'_>) -> Result<()> {
    let workspace = context.workspace;
    toolchain::ensure_component(workspace, "clippy", "cargo-clippy")?;
    toolchain::ensure_target(workspace)?;
    let lint = |select: &[&str], more: &[&str]| {
        let mut cargo = command::cargo(&workspace.root);
        cargo.arg("clippy").args(select).args(more);
        command::run(cargo.args(["--", "-D", "warnings"]))
    };
    // Run both, even if the first fails.
    let native = lint(&natives(workspace), &["--all-targets"]);
    let guests = packages(workspace.guests());
    let guests = if guests.is_empty() { Ok(()) } else { lint(&guests, &["--target", WASM]) };
    native.and(guests)
}
