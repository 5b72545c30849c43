//! Tests the server as a whole, with sample and hostile plugins.

use anyhow::Result;
use toolbay_testkit::workspace::HOST;

use super::context::Context;
use crate::nextest;

/// The test program.
const IT: &str = "it";

/// Selects these tests for the runner.
pub(super) const FILTER: &str = "binary_id(toolbay::it)";

pub(super) fn run(context: &mut Context<'_>) -> Result<()> {
    // Only this crate: nothing else needs to be built, and the step `features` checks that nothing is built twice.
    nextest::run(context.workspace, context.tally, &["--package", HOST, "--test", IT])
}
