//! Runs the unit tests of every crate, including the plugins.

use anyhow::Result;

use super::context::StepContext;
use super::it;
use super::select::select_native;
use crate::nextest;

pub(super) fn run(context: &mut StepContext<'_>) -> Result<()> {
    let mut select = select_native(context.workspace);
    let but_it = format!("not ({})", it::INTEGRATION_FILTER);
    select.extend(["--filterset", &but_it]);
    nextest::run_tests(context.workspace, context.tally, &select)
}
