//! The tests of every crate, plugins included.

use anyhow::Result;

use super::context::Context;
use super::it;
use super::select::natives;
use crate::nextest;

pub(super) fn run(context: &mut Context<'_>) -> Result<()> {
    let mut select = natives(context.workspace);
    let but_it = format!("not ({})", it::FILTER);
    select.extend(["--filterset", &but_it]);
    nextest::run(context.workspace, context.tally, &select)
}
