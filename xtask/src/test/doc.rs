//! Runs the examples in the documentation.

use anyhow::Result;

use super::context::StepContext;
use super::select::select_native;

pub(super) fn run(context: &mut StepContext<'_>) -> Result<()> {
    let mut select = select_native(context.workspace);
    select.push("--doc");
    context.cargo_test(&select)
}
