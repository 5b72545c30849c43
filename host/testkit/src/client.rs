//! A synchronous client over stdio. It sends a request, waits for the response, and buffers the
//! messages that arrive in the meantime.

mod inbox;

use std::path::Path;
use std::process::ExitStatus;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use self::inbox::MessageInbox;
use crate::connection::{SharedConnection, UnclaimedPolicy};
use crate::log::ProgramLog;
use crate::message::{self, RequestResult, TimedMessage};
use crate::process::ProgramProcess;
use crate::{DEADLINE, TestFolder, ToolbayCommand, revision};

/// Interval between the response to a ping and the next ping.
const PING_INTERVAL: Duration = Duration::from_millis(2);

/// A running server and the connection to it. Every method waits for at most [`DEADLINE`]. Dropping
/// the client kills the server.
#[derive(Debug)]
pub struct StdioClient {
    connection: SharedConnection,
    inbox: MessageInbox,
    requests: u64,
    log: ProgramLog,
    /// The server's working folder, which must exist while the server runs.
    _folder: TestFolder,
}

impl StdioClient {
    /// Starts a server on the folder. Does not send anything.
    pub fn start(folder: &TestFolder) -> Result<Self> {
        Self::run(ToolbayCommand::new(folder).args([Path::new("serve")]))
    }

    /// Starts `command`, which must serve over stdio.
    pub fn run(command: ToolbayCommand) -> Result<Self> {
        let (command, folder) = command.into_parts();
        let log = ProgramLog::default();
        let (sender, arriving) = channel();
        let connection = SharedConnection::start(
            command,
            UnclaimedPolicy::Forward(sender),
            log.line_handler(),
        )?;
        Ok(Self {
            connection,
            inbox: MessageInbox::new(arriving),
            requests: 0,
            log,
            _folder: folder,
        })
    }

    /// Returns the time at which the server was started.
    pub fn start_time(&self) -> Instant {
        self.connection.process().start_time
    }

    /// Returns the server's process.
    pub fn process(&self) -> &ProgramProcess {
        self.connection.process()
    }

    /// Returns the server's log.
    pub fn log(&self) -> &ProgramLog {
        &self.log
    }

    /// Returns the revisions with sessions that the server supports, oldest first.
    pub fn session_revisions(&mut self) -> Result<Vec<String>> {
        let id = self.next_id();
        self.send(&message::stateless_request(
            revision::FIRST_STATELESS_REVISION,
            id,
            "server/discover",
            json!({}),
        ))?;
        let discovered = message::parse_response(self.wait_for_response(id)?.message)?
            .context("server/discover")?;
        revision::session_revisions(&discovered)
    }

    /// Performs the handshake for a revision with sessions. Returns the result of `initialize`.
    pub fn initialize(&mut self, revision: &str) -> Result<TimedMessage<Value>> {
        let answer = self.send_initialize(revision)?;
        self.notify("notifications/initialized", &json!({}))?;
        Ok(answer)
    }

    /// Sends `initialize` and returns the result. Does not send `notifications/initialized`.
    pub fn send_initialize(&mut self, revision: &str) -> Result<TimedMessage<Value>> {
        let TimedMessage {
            message: what,
            received_at: at,
        } = self.request_and_wait("initialize", &message::initialize_params(revision))?;
        Ok(TimedMessage {
            message: message::parse_response(what)?.context("initialize")?,
            received_at: at,
        })
    }

    /// Sends a message.
    pub fn send(&self, message: &Value) -> Result<()> {
        self.connection.send(message)
    }

    /// Sends a notification.
    pub fn notify(&self, method: &str, params: &Value) -> Result<()> {
        self.send(&message::notification(method, params))
    }

    /// Sends a request and returns its id.
    pub fn request(&mut self, method: &str, params: &Value) -> Result<u64> {
        let id = self.next_id();
        self.send(&message::request(id, method, params))?;
        Ok(id)
    }

    /// Sends a tool call and returns its request id.
    pub fn start_call(&mut self, tool: &str, arguments: &Value) -> Result<u64> {
        self.request("tools/call", &message::call_params(tool, arguments, None))
    }

    /// Sends a tool call whose progress token is its request id, and returns the id.
    pub fn start_call_with_progress(&mut self, tool: &str, arguments: &Value) -> Result<u64> {
        let token = self.requests + 1;
        self.request(
            "tools/call",
            &message::call_params(tool, arguments, Some(token)),
        )
    }

    /// Waits for the response to a request and returns the whole message.
    pub fn wait_for_response(&mut self, id: u64) -> Result<TimedMessage<Value>> {
        self.wait_for(&format!("the answer to request {id}"), is_response_to(id))
    }

    /// Sends a request, waits for the response and returns the whole message.
    pub fn request_and_wait(
        &mut self,
        method: &str,
        params: &Value,
    ) -> Result<TimedMessage<Value>> {
        let id = self.request(method, params)?;
        self.wait_for_response(id)
    }

    /// Waits for the result of a call.
    pub fn finish_call(&mut self, id: u64) -> Result<TimedMessage<RequestResult>> {
        let TimedMessage {
            message: what,
            received_at: at,
        } = self.wait_for_response(id)?;
        Ok(TimedMessage {
            message: message::parse_response(what)?,
            received_at: at,
        })
    }

    /// Like [`finish_call`](Self::finish_call), but sends pings until the result arrives, with a
    /// short pause after each response. `ponged` receives the round-trip time of each ping.
    pub fn finish_call_with_pings(
        &mut self,
        id: u64,
        mut ponged: impl FnMut(Duration),
    ) -> Result<TimedMessage<RequestResult>> {
        loop {
            let sent = Instant::now();
            ponged(
                self.request_and_wait("ping", &json!({}))?
                    .received_at
                    .saturating_duration_since(sent),
            );
            if let Some(TimedMessage {
                message: what,
                received_at: at,
            }) = self
                .inbox
                .wait_until(Instant::now() + PING_INTERVAL, is_response_to(id))?
            {
                return Ok(TimedMessage {
                    message: message::parse_response(what)?,
                    received_at: at,
                });
            }
        }
    }

    /// Calls a tool and waits for the result.
    pub fn call(&mut self, tool: &str, arguments: &Value) -> Result<TimedMessage<RequestResult>> {
        let id = self.start_call(tool, arguments)?;
        self.finish_call(id)
    }

    /// Waits for the next notification with this method and returns the whole message.
    pub fn notification(&mut self, method: &str) -> Result<TimedMessage<Value>> {
        self.wait_for(method, |message| {
            message.get("method").is_some_and(|name| name == method)
        })
    }

    /// Removes the buffered notifications with this method and returns the whole messages.
    pub fn take_notifications(&mut self, method: &str) -> Vec<Value> {
        self.inbox
            .take_buffered(|message| message.get("method").is_some_and(|name| name == method))
    }

    /// Returns the number of `list_changed` notifications that were read since the last call of
    /// this function.
    pub fn take_list_changes(&mut self) -> usize {
        std::mem::take(&mut self.inbox.list_changes)
    }

    /// Waits for a message that `wanted` accepts. Buffers all others.
    pub fn wait_for(
        &mut self,
        what: &str,
        wanted: impl FnMut(&Value) -> bool,
    ) -> Result<TimedMessage<Value>> {
        self.inbox
            .wait_for(wanted)
            .with_context(|| format!("waited for {what}"))
    }

    /// Waits for the next message from the server. Ignores buffered messages.
    pub fn receive(&mut self, what: &str) -> Result<TimedMessage<Value>> {
        self.inbox
            .next()
            .with_context(|| format!("waited for {what}"))
    }

    /// Returns all tools, from all pages.
    pub fn tools(&mut self) -> Result<Vec<Value>> {
        message::list_all_tools(|params| {
            message::parse_response(self.request_and_wait("tools/list", &params)?.message)?
                .context("tools/list")
        })
    }

    /// Returns the names of all tools, from all pages.
    pub fn tool_names(&mut self) -> Result<Vec<String>> {
        Ok(message::tool_names(&self.tools()?))
    }

    /// Waits until the server has exited. Returns the remaining messages and the exit status.
    pub fn wait_for_exit(&mut self) -> Result<(Vec<Value>, ExitStatus)> {
        // `wait_for_exit` returns after the end of the output, so the inbox then contains every
        // message.
        let status = self.connection.process_mut().wait_for_exit(DEADLINE)?;
        Ok((self.inbox.drain_remaining()?, status))
    }

    /// Closes the server's input and waits until the server has exited. Returns the remaining
    /// messages and the exit status.
    pub fn stop(&mut self) -> Result<(Vec<Value>, ExitStatus)> {
        self.process().close_input();
        self.wait_for_exit()
    }

    /// Kills the server.
    pub fn kill(&mut self) -> Result<()> {
        self.connection.process_mut().kill()
    }

    /// Closes the server's input and waits until the server exits. Fails if it does not exit within
    /// `patience` or its exit status is not 0.
    pub fn stop_within(&mut self, patience: Duration) -> Result<()> {
        self.process().close_input();
        let status = self.connection.process_mut().wait_for_exit(patience)?;
        if status.success() {
            Ok(())
        } else {
            bail!("the server ended with {status}:\n{}", self.log.tail(20))
        }
    }

    fn next_id(&mut self) -> u64 {
        self.requests += 1;
        self.requests
    }
}

/// Returns a predicate that accepts the response to the request `id`.
fn is_response_to(id: u64) -> impl Fn(&Value) -> bool {
    move |message| {
        message.get("id").is_some_and(|answered| *answered == id) && message.get("method").is_none()
    }
}
