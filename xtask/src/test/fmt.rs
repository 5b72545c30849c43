//! Checks that the code is formatted.

use anyhow::Result;
use toolbay_testkit::command;

use super::context::StepContext;
use crate::toolchain;

pub(super) fn run(context: &mut StepContext<'_>) -> Result<()> {
    toolchain::ensure_component(context.workspace, "rustfmt", "cargo-fmt")?;
    command::run(command::cargo(&context.workspace.root).args(["fmt", "--all", "--check"]))
}
