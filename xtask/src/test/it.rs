//! The server as a whole, with sample and hostile plugins.

use anyhow::Result;
use toolbay_testkit::workspace::HOST;

use super::context::Context;
use crate::nextest;

/// The test program.
const IT: &str = "it";

/// What selects these tests among all, for the runner.
pub(super) const FILTER: &str = "binary_id(toolbay::it)";

pub(super) fn run(context: &mut Context<'_>) -> Result<()> {
    // Of this crate alone: nothing else need be built, and the step `features` sees to it that nothing is built twice.
    nextest::run(context.workspace, context.tally, &["--package", HOST, "--test", IT])
}
