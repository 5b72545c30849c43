//! Runs some guests that call the host at random, with a fixed seed.

use anyhow::Result;
use toolbay_testkit::command;

use super::context::StepContext;

pub(super) fn run(context: &mut StepContext<'_>) -> Result<()> {
    let server = &context.built()?.server;
    let mut cargo = command::cargo(&context.workspace.root);
    cargo
        .args([
            "run",
            "--quiet",
            "--package",
            "toolbay-hostcalls",
            "--",
            "--server",
        ])
        .arg(server);
    command::run(cargo.args(["--guests", "40", "--time", "5m", "--seed", "1"]))?;
    context.tally.passed += 1;
    Ok(())
}
