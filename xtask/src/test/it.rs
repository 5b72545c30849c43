//! Tests the server as a whole, with sample and hostile plugins.

use anyhow::Result;
use toolbay_testkit::workspace::HOST_PACKAGE;

use super::context::StepContext;
use crate::nextest;

/// The name of the test program.
const TEST_PROGRAM: &str = "it";

/// The filter expression that selects these tests in the runner.
pub(super) const INTEGRATION_FILTER: &str = "binary_id(toolbay::it)";

pub(super) fn run(context: &mut StepContext<'_>) -> Result<()> {
    // Select only this crate, so that nothing else is built. The step `features` checks that no
    // dependency is compiled twice because of this.
    nextest::run_tests(
        context.workspace,
        context.tally,
        &["--package", HOST_PACKAGE, "--test", TEST_PROGRAM],
    )
}
