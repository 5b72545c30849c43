//! A running soak test.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Result, ensure};
use toolbay_testkit::{CallerMailbox, ObservableValue, SharedConnection};

use crate::counts::Counts;
use crate::log::Log;
use crate::slot::Slot;

/// Interval at which changes of the list of tools and the end of the run are checked.
const LOOK: Duration = Duration::from_millis(100);

/// State that all threads share.
pub(crate) struct Soak<'a> {
    pub(crate) connection: &'a SharedConnection,
    /// The server's log.
    pub(crate) log: &'a ObservableValue<Log>,
    pub(crate) slots: &'a [Slot],
    pub(crate) counts: Counts,
    /// The tools that a client has listed. It lists them only when it is notified of a change.
    pub(crate) listed: ObservableValue<BTreeSet<String>>,
    pub(crate) over: ObservableValue<bool>,
    /// Set when no thread waits for a list of tools any more.
    pub(crate) quiet: AtomicBool,
}

impl Soak<'_> {
    /// Records an error and ends the run with it. Returns whether there was none.
    pub(crate) fn end_with(&self, result: &Result<()>) -> bool {
        if let Err(error) = result {
            self.over.update(|over| *over = true);
            self.connection.ledger().record_fault(&format!("{error:#}"));
        }
        result.is_ok()
    }

    pub(crate) fn is_over(&self) -> bool {
        self.over.read(|over| *over)
    }

    /// Lists the tools whenever the server reports a change.
    pub(crate) fn keep_list(&self) -> Result<()> {
        let mailbox = self.connection.open_mailbox();
        let mut seen = 0;
        loop {
            let told = self
                .connection
                .list_changes()
                .wait_until(LOOK, |times| *times > seen);
            if told {
                seen = self.connection.list_changes().read(|times| *times);
                self.list(&mailbox)?;
            } else if self.quiet.load(Ordering::SeqCst) {
                return Ok(());
            }
        }
    }

    pub(crate) fn list(&self, mailbox: &CallerMailbox<'_>) -> Result<()> {
        let tools = mailbox.tool_names()?;
        ensure!(
            tools.is_sorted_by(|a, b| a < b),
            "the list of tools is not in order: {tools:?}"
        );
        self.listed
            .update(|listed| *listed = tools.into_iter().collect());
        Ok(())
    }
}
