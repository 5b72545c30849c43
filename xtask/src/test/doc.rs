//! The examples in the documentation.

use anyhow::Result;

use super::context::Context;
use super::select::natives;

pub(super) fn run(context: &mut Context<'_>) -> Result<()> {
    let mut select = natives(context.workspace);
    select.push("--doc");
    context.cargo_test(&select)
}
