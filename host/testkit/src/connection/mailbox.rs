//! Sends the requests of one caller and receives the responses.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::books::Books;
use super::event::Event;
use crate::DEADLINE;
use crate::message::{self, Answer, Arrived};
use crate::process::Process;

/// The requests of one caller and the events for them.
#[derive(Debug)]
pub struct Mailbox<'a> {
    process: &'a Process,
    books: &'a Books,
    sender: Sender<Event>,
    events: Receiver<Event>,
}

impl<'a> Mailbox<'a> {
    pub(super) fn new(process: &'a Process, books: &'a Books) -> Self {
        let (sender, events) = channel();
        Self { process, books, sender, events }
    }

    /// Sends a request and returns its id.
    pub fn request(&self, method: &str, params: &Value) -> Result<u64> {
        self.request_with(method, |_| params.clone())
    }

    /// Sends a tool call and returns its request id.
    pub fn call(&self, tool: &str, arguments: &Value) -> Result<u64> {
        self.request_with("tools/call", |_| message::call(tool, arguments, None))
    }

    /// Like [`call`](Self::call), but with a progress token, which is the request id.
    pub fn call_with_progress(&self, tool: &str, arguments: &Value) -> Result<u64> {
        self.request_with("tools/call", |id| message::call(tool, arguments, Some(id)))
    }

    fn request_with(&self, method: &str, params: impl FnOnce(u64) -> Value) -> Result<u64> {
        let id = self.books.asks(&self.sender);
        self.process.write_line(message::request(id, method, &params(id)))?;
        Ok(id)
    }

    /// Waits for the next event. Returns `None` if there is none until `deadline`.
    pub fn next(&self, deadline: Instant) -> Option<Event> {
        self.events.recv_timeout(deadline.saturating_duration_since(Instant::now())).ok()
    }

    /// Waits for the response to a request. Discards all events before it.
    pub fn answer(&self, id: u64) -> Result<Arrived<Answer>> {
        let deadline = Instant::now() + DEADLINE;
        loop {
            match self.next(deadline) {
                Some(Event::Answer(answered, answer)) if answered == id => return Ok(answer),
                Some(Event::Gone) => bail!("the server exited"),
                Some(_) => {}
                None => bail!("request {id} was not answered within {} s", DEADLINE.as_secs()),
            }
        }
    }

    /// Calls a tool and waits for the response.
    pub fn ask(&self, tool: &str, arguments: &Value) -> Result<Arrived<Answer>> {
        self.answer(self.call(tool, arguments)?)
    }

    /// Waits until the guest that runs a call reports progress. Fails if the response arrives
    /// first.
    pub fn begun(&self, id: u64) -> Result<()> {
        let deadline = Instant::now() + DEADLINE;
        loop {
            match self.next(deadline).with_context(|| format!("call {id} did not begin"))? {
                Event::Progress(running) if running == id => return Ok(()),
                Event::Answer(answered, answer) if answered == id => bail!("call {id} was answered: {:?}", answer.what),
                Event::Gone => bail!("the server exited"),
                _ => {}
            }
        }
    }

    /// Returns the names of the currently listed tools, from all pages.
    pub fn tools(&self) -> Result<Vec<String>> {
        message::pages(|params| Ok(self.answer(self.request("tools/list", &params)?)?.what?))
            .map(|tools| message::names(&tools))
            .context("the tools could not be listed")
    }
}
