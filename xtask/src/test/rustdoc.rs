//! Builds the reference of every crate. rustdoc must report nothing.

use anyhow::Result;
use toolbay_testkit::command;

use super::context::Context;
use super::select::natives;

/// Builds the reference of the libraries into `target/doc`, as their users read it.
pub(super) fn run(context: &mut Context<'_>) -> Result<()> {
    let workspace = context.workspace;
    let mut cargo = command::cargo(&workspace.root);
    // `--examples` (there are none) makes cargo choose the features of dependencies as for the tests, so that the
    // output of Clippy's check is reused.
    cargo.args(["doc", "--no-deps", "--lib", "--examples"]).args(natives(workspace));
    command::run(cargo.env("RUSTDOCFLAGS", "-D warnings"))?;
    context.tally.passed += 1;
    Ok(())
}
