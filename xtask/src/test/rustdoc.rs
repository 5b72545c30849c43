//! Builds the API documentation of every crate. Fails if rustdoc reports a warning.

use anyhow::Result;
use toolbay_testkit::command;

use super::context::StepContext;
use super::select::select_native;

/// Builds the API documentation of the libraries into `target/doc`, without private items.
pub(super) fn run(context: &mut StepContext<'_>) -> Result<()> {
    let workspace = context.workspace;
    let mut cargo = command::cargo(&workspace.root);
    // `--examples` (there are none) makes cargo select the same features of dependencies as for the
    // tests, so that the output of the Clippy step is reused.
    cargo
        .args(["doc", "--no-deps", "--lib", "--examples"])
        .args(select_native(workspace));
    command::run(cargo.env("RUSTDOCFLAGS", "-D warnings"))?;
    context.tally.passed += 1;
    Ok(())
}
