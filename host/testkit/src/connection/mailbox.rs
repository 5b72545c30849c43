//! Sends the requests of one caller and receives the responses.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::event::CallerEvent;
use super::ledger::RequestLedger;
use crate::DEADLINE;
use crate::message::{self, RequestResult, TimedMessage};
use crate::process::ProgramProcess;

/// The requests of one caller and the events for them.
#[derive(Debug)]
pub struct CallerMailbox<'a> {
    process: &'a ProgramProcess,
    ledger: &'a RequestLedger,
    sender: Sender<CallerEvent>,
    events: Receiver<CallerEvent>,
}

impl<'a> CallerMailbox<'a> {
    pub(super) fn new(process: &'a ProgramProcess, books: &'a RequestLedger) -> Self {
        let (sender, events) = channel();
        Self {
            process,
            ledger: books,
            sender,
            events,
        }
    }

    /// Sends a request and returns its id.
    pub fn request(&self, method: &str, params: &Value) -> Result<u64> {
        self.request_with(method, |_| params.clone())
    }

    /// Sends a tool call and returns its request id.
    pub fn call(&self, tool: &str, arguments: &Value) -> Result<u64> {
        self.request_with("tools/call", |_| {
            message::call_params(tool, arguments, None)
        })
    }

    /// Like [`call_params`](Self::call), but with a progress token, which is the request id.
    pub fn call_with_progress(&self, tool: &str, arguments: &Value) -> Result<u64> {
        self.request_with("tools/call", |id| {
            message::call_params(tool, arguments, Some(id))
        })
    }

    fn request_with(&self, method: &str, params: impl FnOnce(u64) -> Value) -> Result<u64> {
        let id = self.ledger.register_request(&self.sender);
        self.process
            .write_line(message::request(id, method, &params(id)))?;
        Ok(id)
    }

    /// Waits for the next event. Returns `None` if there is none until `deadline`.
    pub fn next_event(&self, deadline: Instant) -> Option<CallerEvent> {
        self.events
            .recv_timeout(deadline.saturating_duration_since(Instant::now()))
            .ok()
    }

    /// Waits for the response to a request. Discards all events before it.
    pub fn wait_for_response(&self, id: u64) -> Result<TimedMessage<RequestResult>> {
        let deadline = Instant::now() + DEADLINE;
        loop {
            match self.next_event(deadline) {
                Some(CallerEvent::Response(answered, answer)) if answered == id => {
                    return Ok(answer);
                }
                Some(CallerEvent::ServerExited) => bail!("the server exited"),
                Some(_) => {}
                None => bail!(
                    "request {id} was not answered within {} s",
                    DEADLINE.as_secs()
                ),
            }
        }
    }

    /// Calls a tool and waits for the response.
    pub fn call_and_wait(
        &self,
        tool: &str,
        arguments: &Value,
    ) -> Result<TimedMessage<RequestResult>> {
        self.wait_for_response(self.call(tool, arguments)?)
    }

    /// Waits until the guest that runs a call reports progress. Fails if the response arrives
    /// first.
    pub fn wait_until_started(&self, id: u64) -> Result<()> {
        let deadline = Instant::now() + DEADLINE;
        loop {
            match self
                .next_event(deadline)
                .with_context(|| format!("call {id} did not begin"))?
            {
                CallerEvent::Progress(running) if running == id => return Ok(()),
                CallerEvent::Response(answered, answer) if answered == id => {
                    bail!("call {id} was answered: {:?}", answer.message)
                }
                CallerEvent::ServerExited => bail!("the server exited"),
                _ => {}
            }
        }
    }

    /// Returns the names of the currently listed tools, from all pages.
    pub fn tool_names(&self) -> Result<Vec<String>> {
        message::list_all_tools(|params| {
            Ok(self
                .wait_for_response(self.request("tools/list", &params)?)?
                .message?)
        })
        .map(|tools| message::tool_names(&tools))
        .context("the tools could not be listed")
    }
}
