//! Runs the conversations of an installed client.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;
use toolbay_testkit::build::Built;

use super::conversation::Conversation;
use crate::tally::Tally;

/// The plugin that the clients add to the plugin folder.
pub(super) const NEWCOMER: &str = "bare.wasm";

/// Every transport. The client selects the revision.
pub(super) const EACH_TRANSPORT: &[Conversation] = &[("auto", "stdio"), ("auto", "http"), ("auto", "sse")];

/// An installed client program.
pub(super) struct Script {
    pub(super) client: &'static str,
    pub(super) program: PathBuf,
    pub(super) args: Vec<OsString>,
    pub(super) conversations: &'static [Conversation],
}

impl Script {
    /// Runs one conversation with the real server.
    pub(super) fn run(&self, (mode, transport): Conversation, built: &Built, tally: &mut Tally) -> Result<()> {
        let mut command = Command::new(&self.program);
        command
            .args(&self.args)
            .args([mode, transport])
            .arg(&built.server)
            .arg(&built.plugins)
            .arg(built.guests.join(NEWCOMER));
        tally.count_lines(&mut command)
    }
}
