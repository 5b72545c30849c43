//! Runs the conversations of an installed client.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;
use toolbay_testkit::build::BuildOutput;

use super::conversation::ClientConversation;
use crate::tally::TestCounts;

/// The plugin that the clients add to the plugin folder.
pub(super) const ADDED_PLUGIN: &str = "bare.wasm";

/// Every transport. The client selects the revision.
pub(super) const EACH_TRANSPORT: &[ClientConversation] =
    &[("auto", "stdio"), ("auto", "http"), ("auto", "sse")];

/// An installed client program.
pub(super) struct ClientScript {
    pub(super) client: &'static str,
    pub(super) program: PathBuf,
    pub(super) args: Vec<OsString>,
    pub(super) conversations: &'static [ClientConversation],
}

impl ClientScript {
    /// Runs one conversation with the real server.
    pub(super) fn run_conversation(
        &self,
        (mode, transport): ClientConversation,
        built: &BuildOutput,
        tally: &mut TestCounts,
    ) -> Result<()> {
        let mut command = Command::new(&self.program);
        command
            .args(&self.args)
            .args([mode, transport])
            .arg(&built.server)
            .arg(&built.plugins)
            .arg(built.guests.join(ADDED_PLUGIN));
        tally.run_and_print(&mut command)
    }
}
