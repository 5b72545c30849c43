//! The context in which a test step runs.

use anstream::println;
use anyhow::{Context as _, Result};
use toolbay_testkit::build::BuildOutput;
use toolbay_testkit::command;
use toolbay_testkit::workspace::CargoWorkspace;

use crate::tally::TestCounts;

/// The context in which a test step runs.
pub(super) struct StepContext<'a> {
    pub(super) workspace: &'a CargoWorkspace,
    /// The server and the plugins, if a step requires the build.
    pub(super) built: Option<&'a BuildOutput>,
    /// The test counts of the step.
    pub(super) tally: &'a mut TestCounts,
}

impl<'a> StepContext<'a> {
    /// Returns the build. Only a step with `needs_build` in its table row may call this.
    pub(super) fn built(&self) -> Result<&'a BuildOutput> {
        self.built
            .context("this step does not say that it needs the build")
    }

    /// Runs `cargo test` and counts the tests in the harness's output.
    pub(super) fn cargo_test(&mut self, args: &[&str]) -> Result<()> {
        let mut cargo = command::cargo(&self.workspace.root);
        cargo.args(["test", "--no-fail-fast"]).args(args);
        self.tally.run_and_count(&mut cargo, |line| {
            println!("{line}");
            TestCounts::parse_harness_line(line)
        })
    }
}
