//! The server as a whole, with sample and hostile plugins.

use anyhow::Result;

use super::{Context, natives};
use crate::nextest;

/// The black-box tests among all, for the runner.
pub(super) const FILTER: &str = "binary_id(toolbay::it)";

pub(super) fn run(context: &mut Context<'_>) -> Result<()> {
    let mut select = natives(context.workspace);
    select.extend(["--filterset", FILTER]);
    nextest::run(context.workspace, context.tally, &select)
}
