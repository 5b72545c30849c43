//! Runs the soak test for a few seconds, to check that it works.

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
            "toolbay-soak",
            "--",
            "--server",
        ])
        .arg(server);
    command::run(cargo.args([
        "--calls",
        "500",
        "--reloads",
        "20",
        "--time",
        "1m",
        "--seed",
        "1",
    ]))?;
    context.tally.passed += 1;
    Ok(())
}
