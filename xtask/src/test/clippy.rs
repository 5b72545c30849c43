//! Runs Clippy. Fails if it reports a warning.

use anyhow::Result;
use toolbay_testkit::build::WASM_TARGET;
use toolbay_testkit::command;

use super::context::StepContext;
use super::select::{select_native, select_packages};
use crate::toolchain;

pub(super) fn run(context: &mut StepContext<'_>) -> Result<()> {
    let workspace = context.workspace;
    toolchain::ensure_component(workspace, "clippy", "cargo-clippy")?;
    toolchain::ensure_target(workspace)?;
    let lint = |select: &[&str], more: &[&str]| {
        let mut cargo = command::cargo(&workspace.root);
        cargo.arg("clippy").args(select).args(more);
        command::run(cargo.args(["--", "-D", "warnings"]))
    };
    // Run both, even if the first fails.
    let native = lint(&select_native(workspace), &["--all-targets"]);
    let guests = select_packages(workspace.guests());
    let guests = if guests.is_empty() {
        Ok(())
    } else {
        lint(&guests, &["--target", WASM_TARGET])
    };
    native.and(guests)
}
