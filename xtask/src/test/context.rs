//! The context in which a test step runs.

use anstream::println;
use anyhow::{Context as _, Result};
use toolbay_testkit::build::Built;
use toolbay_testkit::command;
use toolbay_testkit::workspace::Workspace;

use crate::tally::Tally;

/// The context in which a test step runs.
pub(super) struct Context<'a> {
    pub(super) workspace: &'a Workspace,
    /// The server and the plugins, if a step requires the build.
    pub(super) built: Option<&'a Built>,
    /// The test counts of the step.
    pub(super) tally: &'a mut Tally,
}

impl<'a> Context<'a> {
    /// Returns the build. Only a step with `needs_build` in its table row may call this.
    pub(super) fn built(&self) -> Result<&'a Built> {
        self.built.context("this step does not say that it needs the build")
    }

    /// Runs `cargo test` and counts the tests in the harness's output.
    pub(super) fn cargo_test(&mut self, args: &[&str]) -> Result<()> {
        let mut cargo = command::cargo(&self.workspace.root);
        cargo.args(["test", "--no-fail-fast"]).args(args);
        self.tally.count(&mut cargo, |line| {
            println!("{line}");
            Tally::of_harness(line)
        })
    }
}
