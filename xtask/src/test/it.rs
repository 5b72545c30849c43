//! Tests the server as a whole, with sample and hostile plugins.

use anyhow::Result;
use toolbay_testkit::workspace::HOST;

use super::context::Context;
use crate::nextest;

/// The name of the test program.
const IT: &str = "it";

/// The filter expression that selects these tests in the runner.
pub(super) const FILTER: &str = "binary_id(toolbay::it)";

pub(super) fn run(context: &mut Context<'_>) -> Result<()> {
    // Select only this crate, so that nothing else is built. The step `features` checks that no
    // dependency is compiled twice because of this.
    nextest::run(context.workspace, context.tally, &["--package", HOST, "--test", IT])
}
