//! A synchronous client over stdio. It sends a request, waits for the response, and buffers the
//! messages that arrive in the meantime.

mod inbox;

use std::path::Path;
use std::process::ExitStatus;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use self::inbox::Inbox;
use crate::connection::{Connection, Unclaimed};
use crate::log::Log;
use crate::message::{self, Answer, Arrived};
use crate::process::Process;
use crate::{DEADLINE, Folder, Toolbay, revision};

/// Interval between the response to a ping and the next ping.
const BETWEEN_PINGS: Duration = Duration::from_millis(2);

/// A running server and the connection to it. Every method waits for at most [`DEADLINE`]. Dropping
/// the client kills the server.
#[derive(Debug)]
pub struct Client {
    connection: Connection,
    inbox: Inbox,
    requests: u64,
    log: Log,
    /// The server's working folder, which must exist while the server runs.
    _folder: Folder,
}

impl Client {
    /// Starts a server on the folder. Does not send anything.
    pub fn start(folder: &Folder) -> Result<Self> {
        Self::run(Toolbay::new(folder).args([Path::new("serve")]))
    }

    /// Starts `command`, which must serve over stdio.
    pub fn run(command: Toolbay) -> Result<Self> {
        let (command, folder) = command.into_parts();
        let (log, (sender, arriving)) = (Log::default(), channel());
        let connection = Connection::start(command, Unclaimed::HandedOn(sender), log.hear())?;
        Ok(Self { connection, inbox: Inbox::new(arriving), requests: 0, log, _folder: folder })
    }

    /// Returns the time at which the server was started.
    pub fn started(&self) -> Instant {
        self.connection.process().started
    }

    /// Returns the server's process.
    pub fn process(&self) -> &Process {
        self.connection.process()
    }

    /// Returns the server's log.
    pub fn log(&self) -> &Log {
        &self.log
    }

    /// Returns the revisions with sessions that the server supports, oldest first.
    pub fn with_sessions(&mut self) -> Result<Vec<String>> {
        let id = self.next_id();
        self.send(&message::stateless(revision::STATELESS, id, "server/discover", json!({})))?;
        let discovered = message::answer(self.answer(id)?.what)?.context("server/discover")?;
        revision::with_sessions(&discovered)
    }

    /// Performs the handshake for a revision with sessions. Returns the result of `initialize`.
    pub fn initialize(&mut self, revision: &str) -> Result<Arrived<Value>> {
        let answer = self.say_initialize(revision)?;
        self.notify("notifications/initialized", &json!({}))?;
        Ok(answer)
    }

    /// Sends `initialize` and returns the result. Does not send `notifications/initialized`.
    pub fn say_initialize(&mut self, revision: &str) -> Result<Arrived<Value>> {
        let Arrived { what, at } = self.ask("initialize", &message::hello(revision))?;
        Ok(Arrived { what: message::answer(what)?.context("initialize")?, at })
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
    pub fn begin(&mut self, tool: &str, arguments: &Value) -> Result<u64> {
        self.request("tools/call", &message::call(tool, arguments, None))
    }

    /// Sends a tool call whose progress token is its request id, and returns the id.
    pub fn begin_with_progress(&mut self, tool: &str, arguments: &Value) -> Result<u64> {
        let token = self.requests + 1;
        self.request("tools/call", &message::call(tool, arguments, Some(token)))
    }

    /// Waits for the response to a request and returns the whole message.
    pub fn answer(&mut self, id: u64) -> Result<Arrived<Value>> {
        self.wait_for(&format!("the answer to request {id}"), answers(id))
    }

    /// Sends a request, waits for the response and returns the whole message.
    pub fn ask(&mut self, method: &str, params: &Value) -> Result<Arrived<Value>> {
        let id = self.request(method, params)?;
        self.answer(id)
    }

    /// Waits for the result of a call.
    pub fn finish(&mut self, id: u64) -> Result<Arrived<Answer>> {
        let Arrived { what, at } = self.answer(id)?;
        Ok(Arrived { what: message::answer(what)?, at })
    }

    /// Like [`finish`](Self::finish), but sends pings until the result arrives, with a short pause
    /// after each response. `ponged` receives the round-trip time of each ping.
    pub fn finish_with_pings(&mut self, id: u64, mut ponged: impl FnMut(Duration)) -> Result<Arrived<Answer>> {
        loop {
            let sent = Instant::now();
            ponged(self.ask("ping", &json!({}))?.at.saturating_duration_since(sent));
            if let Some(Arrived { what, at }) = self.inbox.wait_until(Instant::now() + BETWEEN_PINGS, answers(id))? {
                return Ok(Arrived { what: message::answer(what)?, at });
            }
        }
    }

    /// Calls a tool and waits for the result.
    pub fn call(&mut self, tool: &str, arguments: &Value) -> Result<Arrived<Answer>> {
        let id = self.begin(tool, arguments)?;
        self.finish(id)
    }

    /// Waits for the next notification with this method and returns the whole message.
    pub fn notification(&mut self, method: &str) -> Result<Arrived<Value>> {
        self.wait_for(method, |message| message.get("method").is_some_and(|name| name == method))
    }

    /// Removes the buffered notifications with this method and returns the whole messages.
    pub fn kept_notifications(&mut self, method: &str) -> Vec<Value> {
        self.inbox.take_kept(|message| message.get("method").is_some_and(|name| name == method))
    }

    /// Returns the number of `list_changed` notifications that were read since the last call of
    /// this function.
    pub fn take_list_changes(&mut self) -> usize {
        std::mem::take(&mut self.inbox.list_changes)
    }

    /// Waits for a message that `wanted` accepts. Buffers all others.
    pub fn wait_for(&mut self, what: &str, wanted: impl FnMut(&Value) -> bool) -> Result<Arrived<Value>> {
        self.inbox.wait_for(wanted).with_context(|| format!("waited for {what}"))
    }

    /// Waits for the next message from the server. Ignores buffered messages.
    pub fn receive(&mut self, what: &str) -> Result<Arrived<Value>> {
        self.inbox.next().with_context(|| format!("waited for {what}"))
    }

    /// Returns all tools, from all pages.
    pub fn tools(&mut self) -> Result<Vec<Value>> {
        message::pages(|params| message::answer(self.ask("tools/list", &params)?.what)?.context("tools/list"))
    }

    /// Returns the names of all tools, from all pages.
    pub fn names(&mut self) -> Result<Vec<String>> {
        Ok(message::names(&self.tools()?))
    }

    /// Waits until the server has exited. Returns the remaining messages and the exit status.
    pub fn wait(&mut self) -> Result<(Vec<Value>, ExitStatus)> {
        // `wait` returns after the end of the output, so the inbox then contains every message.
        let status = self.connection.process_mut().wait(DEADLINE)?;
        Ok((self.inbox.rest()?, status))
    }

    /// Closes the server's input and waits until the server has exited. Returns the remaining
    /// messages and the exit status.
    pub fn end(&mut self) -> Result<(Vec<Value>, ExitStatus)> {
        self.process().close_input();
        self.wait()
    }

    /// Kills the server.
    pub fn kill(&mut self) -> Result<()> {
        self.connection.process_mut().kill()
    }

    /// Closes the server's input and waits until the server exits. Fails if it does not exit within
    /// `patience` or its exit status is not 0.
    pub fn say_goodbye(&mut self, patience: Duration) -> Result<()> {
        self.process().close_input();
        let status = self.connection.process_mut().wait(patience)?;
        if status.success() { Ok(()) } else { bail!("the server ended with {status}:\n{}", self.log.tail(20)) }
    }

    fn next_id(&mut self) -> u64 {
        self.requests += 1;
        self.requests
    }
}

/// Returns a predicate that accepts the response to the request `id`.
fn answers(id: u64) -> impl Fn(&Value) -> bool {
    move |message| message.get("id").is_some_and(|answered| *answered == id) && message.get("method").is_none()
}
