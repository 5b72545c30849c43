//! What a step of the tests has at hand.

use anstream::println;
use anyhow::{Context as _, Result};
use toolbay_testkit::build::Built;
use toolbay_testkit::command;
use toolbay_testkit::workspace::Workspace;

use crate::tally::Tally;

/// What a step works with.
pub(super) struct Context<'a> {
    pub(super) workspace: &'a Workspace,
    /// The server and the plugins, for a step that needs them.
    pub(super) built: Option<&'a Built>,
    /// What the step has counted.
    pub(super) tally: &'a mut Tally,
}

impl<'a> Context<'a> {
    /// What was built. Only a step that says so in the table may ask.
    pub(super) fn built(&self) -> Result<&'a Built> {
        self.built.context("this step does not say that it needs the build")
    }

    /// Runs cargo, and counts with what the test harness says.
    pub(super) fn cargo_test(&mut self, args: &[&str]) -> Result<()> {
        let mut cargo = command::cargo(&self.workspace.root);
        cargo.args(["test", "--no-fail-fast"]).args(args);
        self.tally.count(&mut cargo, |line| {
            println!("{line}");
            Tally::of_harness(line)
        })
    }
}
