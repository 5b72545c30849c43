//! Where the answers to one caller's requests arrive.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::Connection;
use crate::client::{Answer, Arrived};

/// How long an answer may take before it counts as never.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);

/// What a caller hears.
#[derive(Debug)]
pub(crate) enum Event {
    /// A request was answered.
    Answer(u64, Arrived<Answer>),
    /// The guest that serves this request says that it is running.
    Progress(u64),
    /// The server has ended.
    Gone,
}

/// One caller's requests, and what comes of them.
pub(crate) struct Mailbox<'a> {
    connection: &'a Connection,
    sender: Sender<Event>,
    events: Receiver<Event>,
}

impl<'a> Mailbox<'a> {
    pub(super) fn new(connection: &'a Connection) -> Self {
        let (sender, events) = channel();
        Self { connection, sender, events }
    }

    /// Sends a request and returns its id.
    pub(crate) fn request(&self, method: &str, params: &Value) -> Result<u64> {
        let id = self.connection.books().asks(&self.sender);
        self.connection.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))?;
        Ok(id)
    }

    /// Sends a call of a tool and returns its id.
    pub(crate) fn call(&self, tool: &str, arguments: &Value) -> Result<u64> {
        self.request("tools/call", &json!({"name": tool, "arguments": arguments}))
    }

    /// The same, for a caller who wants to hear of its progress.
    pub(crate) fn call_with_progress(&self, tool: &str, arguments: &Value) -> Result<u64> {
        let id = self.connection.books().asks(&self.sender);
        let params = json!({"name": tool, "arguments": arguments, "_meta": {"progressToken": id}});
        self.connection.send(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}))?;
        Ok(id)
    }

    /// The next thing that happens; `None` if nothing does until `deadline`.
    pub(crate) fn next(&self, deadline: Instant) -> Option<Event> {
        self.events.recv_timeout(deadline.saturating_duration_since(Instant::now())).ok()
    }

    /// Waits for the answer to a request. Whatever else comes before it is dropped.
    pub(crate) fn answer(&self, id: u64) -> Result<Arrived<Answer>> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.next(deadline) {
                Some(Event::Answer(answered, answer)) if answered == id => return Ok(answer),
                Some(Event::Gone) => bail!("the server has ended"),
                Some(_) => {}
                None => bail!("request {id} was not answered within {} s", PATIENCE.as_secs()),
            }
        }
    }

    /// Calls a tool and waits for its answer.
    pub(crate) fn ask(&self, tool: &str, arguments: &Value) -> Result<Arrived<Answer>> {
        self.answer(self.call(tool, arguments)?)
    }

    /// Waits until a guest says that it is running. Its answer must not come before.
    pub(crate) fn begun(&self, id: u64) -> Result<()> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.next(deadline).with_context(|| format!("call {id} did not begin"))? {
                Event::Progress(running) if running == id => return Ok(()),
                Event::Answer(answered, answer) if answered == id => bail!("call {id} was answered: {:?}", answer.what),
                Event::Gone => bail!("the server has ended"),
                _ => {}
            }
        }
    }

    /// The names of the tools that are offered now.
    pub(crate) fn tools(&self) -> Result<Vec<String>> {
        let id = self.request("tools/list", &json!({}))?;
        let Ok(list) = self.answer(id)?.what else { bail!("tools/list was answered with an error") };
        let tools = list.get("tools").and_then(Value::as_array).context("tools/list has no tools")?;
        Ok(tools.iter().filter_map(|tool| Some(tool.get("name")?.as_str()?.to_owned())).collect())
    }
}
