//! A connection to a real server that several callers share. Their requests run concurrently, and
//! the connection checks that each request gets exactly one response.

mod event;
mod ledger;
mod mailbox;

use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

pub use self::event::CallerEvent;
pub use self::ledger::{FaultSummary, RequestLedger};
pub use self::mailbox::CallerMailbox;
use crate::LIST_CHANGED;
use crate::message::{self, TimedMessage};
use crate::observable_value::ObservableValue;
use crate::process::{ProgramProcess, StreamEvent};

/// The policy for messages that belong to no caller's request.
#[derive(Debug)]
pub enum UnclaimedPolicy {
    /// Each message is checked, and an unexpected one is recorded as a fault.
    Check,
    /// Each message is forwarded to the channel. A line that is not a valid message is forwarded as
    /// an error.
    Forward(Sender<TimedMessage<Result<Value, String>>>),
}

/// A running server and the requests that were sent to it.
#[derive(Debug)]
pub struct SharedConnection {
    process: ProgramProcess,
    state: Arc<SharedConnectionState>,
}

/// The state that is shared with the reader thread.
#[derive(Debug, Default)]
struct SharedConnectionState {
    ledger: RequestLedger,
    /// The number of `list_changed` notifications from the server.
    list_changes: ObservableValue<u64>,
}

impl SharedConnection {
    /// Starts a command that serves over stdio. Does not send anything. `log` receives the server's
    /// standard error.
    pub fn start(
        mut command: Command,
        unclaimed: UnclaimedPolicy,
        log: impl FnMut(StreamEvent<'_>) + Send + 'static,
    ) -> Result<Self> {
        let shared = Arc::new(SharedConnectionState::default());
        let hearing = Arc::clone(&shared);
        let hear = move |heard: StreamEvent<'_>| hearing.handle_output(heard, &unclaimed);
        let process = ProgramProcess::start(command.stdin(Stdio::piped()), hear, log)?;
        Ok(Self {
            process,
            state: shared,
        })
    }

    /// Performs the handshake for a revision with sessions. Returns the result of `initialize`.
    pub fn initialize(&self, revision: &str) -> Result<TimedMessage<Value>> {
        let mailbox = self.open_mailbox();
        let answer = mailbox.wait_for_response(
            mailbox.request("initialize", &message::initialize_params(revision))?,
        )?;
        let result = answer.message.context("initialize was refused")?;
        self.send(&message::notification(
            "notifications/initialized",
            &json!({}),
        ))?;
        Ok(TimedMessage {
            message: result,
            received_at: answer.received_at,
        })
    }

    /// Creates the mailbox of a new caller.
    pub fn open_mailbox(&self) -> CallerMailbox<'_> {
        CallerMailbox::new(self.process(), self.ledger())
    }

    /// Returns the server's process.
    pub fn process(&self) -> &ProgramProcess {
        &self.process
    }

    /// Returns the server's process as mutable, for example to kill it.
    pub fn process_mut(&mut self) -> &mut ProgramProcess {
        &mut self.process
    }

    /// Returns the server's process id.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Returns the record of requests and responses.
    pub fn ledger(&self) -> &RequestLedger {
        &self.state.ledger
    }

    /// Returns the number of `list_changed` notifications from the server.
    pub fn list_changes(&self) -> &ObservableValue<u64> {
        &self.state.list_changes
    }

    /// Cancels a request. The server may still respond to it.
    pub fn cancel(&self, id: u64) -> Result<()> {
        self.ledger().mark_cancelled(id);
        let params = json!({"requestId": id, "reason": "as asked"});
        self.send(&message::notification("notifications/cancelled", &params))
    }

    /// Sends a line that is not a valid request. The server must respond with an error that has no
    /// request id.
    pub fn send_invalid_line(&self, line: &str) -> Result<()> {
        self.ledger().record_invalid_line();
        self.process.write_line(line)
    }

    /// Sends a message.
    pub fn send(&self, message: &Value) -> Result<()> {
        self.process.write_line(message)
    }

    /// Closes the server's input and waits until the server has exited. Returns the exit status and
    /// the elapsed time. A server that does not exit within `patience` is killed, which is an
    /// error.
    pub fn stop(mut self, patience: Duration) -> Result<(ExitStatus, Duration)> {
        let began = Instant::now();
        self.process.close_input();
        let status = self.process.wait_for_exit(patience)?;
        Ok((status, began.elapsed()))
    }

    /// Waits until `wanted` accepts the list of tools. Returns the names of the tools. `patience`
    /// limits the time between two changes of the list.
    pub fn wait_until_listed(
        &self,
        patience: Duration,
        wanted: impl Fn(&[String]) -> bool,
    ) -> Result<Vec<String>> {
        let mailbox = self.open_mailbox();
        loop {
            let seen = self.list_changes().read(|times| *times);
            let tools = mailbox.tool_names()?;
            if wanted(&tools) {
                return Ok(tools);
            }
            if !self
                .list_changes()
                .wait_until(patience, |times| *times > seen)
            {
                bail!(
                    "not everything was loaded within {} s; offered are {}",
                    patience.as_secs(),
                    tools.join(", ")
                );
            }
        }
    }
}

impl SharedConnectionState {
    fn handle_output(&self, heard: StreamEvent<'_>, unclaimed: &UnclaimedPolicy) {
        let (read, at) = match heard {
            StreamEvent::Line(line, at) => (
                message::parse_line(line).map_err(|error| format!("{error:#}")),
                at,
            ),
            StreamEvent::ReadError(error) => (
                Err(format!("the server's output cannot be read: {error}")),
                Instant::now(),
            ),
            StreamEvent::End => return self.ledger.notify_server_exit(),
        };
        let method = read
            .as_ref()
            .ok()
            .and_then(|message| message.get("method")?.as_str());
        if method == Some(LIST_CHANGED) {
            self.list_changes.update(|times| *times += 1);
        }
        // Other lists also change when plugins are added or removed.
        if let (UnclaimedPolicy::Check, Some(method)) = (unclaimed, method)
            && method.ends_with("/list_changed")
        {
            return;
        }
        let left = match read {
            Ok(message) => match self.ledger.handle_message(message, at) {
                Some(message) => Ok(message),
                None => return,
            },
            Err(error) => Err(error),
        };
        match (unclaimed, left) {
            (UnclaimedPolicy::Check, Ok(message)) => self.ledger.check_unclaimed(&message),
            (UnclaimedPolicy::Check, Err(error)) => self.ledger.record_fault(&error),
            // If the receiver was dropped, the message is discarded.
            (UnclaimedPolicy::Forward(to), what) => drop(to.send(TimedMessage {
                message: what,
                received_at: at,
            })),
        }
    }
}
