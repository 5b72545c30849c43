//! The reference of every crate is made, and rustdoc has nothing to say about it.

use anyhow::Result;
use toolbay_testkit::command;

use super::context::Context;
use super::select::natives;

/// Makes the reference of the libraries into `target/doc`, as those who use them read it.
pub(super) fn run(context: &mut Context<'_>) -> Result<()> {
    let workspace = context.workspace;
    let mut cargo = command::cargo(&workspace.root);
    // `--examples` (there are none) has cargo choose the features of dependencies as it does for the tests: what clippy
    // checked is used again.
    cargo.args(["doc", "--no-deps", "--lib", "--examples"]).args(natives(workspace));
    command::run(cargo.env("RUSTDOCFLAGS", "-D warnings"))?;
    context.tally.passed += 1;
    Ok(())
}
