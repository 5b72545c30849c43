//! The context of a step of the tests.

use anstream::println;
use anyhow::{Context as _, Result};
use toolbay_testkit::build::Built;
use toolbay_testkit::command;
use toolbay_testkit::workspace::Workspace;

use crate::tally::Tally;

/// The context of a step.
pub(super) struct Context<'a> {
    pub(super) workspace: &'a Workspace,
    /// The server and the plugins, for a step that needs them.
    pub(super) built: Option<&'a Built>,
    /// The counts of the step.
    pub(super) tally: &'a mut Tally,
}

impl<'a> Context<'a> {
    /// The build. Only a step whose row in the table says that it needs the build may use it.
    pub(super) fn built(&self) -> Result<&'a Built> {
        self.built.context("this step does not say that it needs the build")
    }

    /// Runs cargo, and counts tests in the harness's output.
    pub(super) fn cargo_test(&mut self, args: &[&str]) -> Result<()> {
        let mut cargo = command::cargo(&self.workspace.root);
        cargo.args(["test", "--no-fail-fast"]).args(args);
        self.tally.count(&mut cargo, |line| {
            println!("{line}");
            Tally::of_harness(line)
        })
    }
}
