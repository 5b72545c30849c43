//! A connection to a real server that several callers share. Their requests run concurrently, and
//! the connection checks that each request gets exactly one response.

mod books;
mod event;
mod mailbox;

use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

pub use self::books::{Books, Faults};
pub use self::event::Event;
pub use self::mailbox::Mailbox;
use crate::LIST_CHANGED;
use crate::message::{self, Arrived};
use crate::process::{Heard, Process};
use crate::signal::Signal;

/// The policy for messages that belong to no caller's request.
#[derive(Debug)]
pub enum Unclaimed {
    /// Each message is checked, and an unexpected one is recorded as a fault.
    Judged,
    /// Each message is forwarded to the channel. A line that is not a valid message is forwarded as
    /// an error.
    HandedOn(Sender<Arrived<Result<Value, String>>>),
}

/// A running server and the requests that were sent to it.
#[derive(Debug)]
pub struct Connection {
    process: Process,
    shared: Arc<Shared>,
}

/// The state that is shared with the reader thread.
#[derive(Debug, Default)]
struct Shared {
    books: Books,
    /// The number of `list_changed` notifications from the server.
    listings: Signal<u64>,
}

impl Connection {
    /// Starts a command that serves over stdio. Does not send anything. `log` receives the server's
    /// standard error.
    pub fn start(
        mut command: Command,
        unclaimed: Unclaimed,
        log: impl FnMut(Heard<'_>) + Send + 'static,
    ) -> Result<Self> {
        let shared = Arc::new(Shared::default());
        let hearing = Arc::clone(&shared);
        let hear = move |heard: Heard<'_>| hearing.hear(heard, &unclaimed);
        let process = Process::start(command.stdin(Stdio::piped()), hear, log)?;
        Ok(Self { process, shared })
    }

    /// Performs the handshake for a revision with sessions. Returns the result of `initialize`.
    pub fn initialize(&self, revision: &str) -> Result<Arrived<Value>> {
        let mailbox = self.mailbox();
        let answer = mailbox.answer(mailbox.request("initialize", &message::hello(revision))?)?;
        let result = answer.what.context("initialize was refused")?;
        self.send(&message::notification("notifications/initialized", &json!({})))?;
        Ok(Arrived { what: result, at: answer.at })
    }

    /// Creates the mailbox of a new caller.
    pub fn mailbox(&self) -> Mailbox<'_> {
        Mailbox::new(self.process(), self.books())
    }

    /// Returns the server's process.
    pub fn process(&self) -> &Process {
        &self.process
    }

    /// Returns the server's process as mutable, for example to kill it.
    pub fn process_mut(&mut self) -> &mut Process {
        &mut self.process
    }

    /// Returns the server's process id.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Returns the record of requests and responses.
    pub fn books(&self) -> &Books {
        &self.shared.books
    }

    /// Returns the number of `list_changed` notifications from the server.
    pub fn listings(&self) -> &Signal<u64> {
        &self.shared.listings
    }

    /// Cancels a request. The server may still respond to it.
    pub fn cancel(&self, id: u64) -> Result<()> {
        self.books().cancelled(id);
        let params = json!({"requestId": id, "reason": "as asked"});
        self.send(&message::notification("notifications/cancelled", &params))
    }

    /// Sends a line that is not a valid request. The server must respond with an error that has no
    /// request id.
    pub fn send_garbage(&self, line: &str) -> Result<()> {
        self.books().garbage_sent();
        self.process.write_line(line)
    }

    /// Sends a message.
    pub fn send(&self, message: &Value) -> Result<()> {
        self.process.write_line(message)
    }

    /// Closes the server's input and waits until the server has exited. Returns the exit status and
    /// the elapsed time. A server that does not exit within `patience` is killed, which is an
    /// error.
    pub fn end(mut self, patience: Duration) -> Result<(ExitStatus, Duration)> {
        let began = Instant::now();
        self.process.close_input();
        let status = self.process.wait(patience)?;
        Ok((status, began.elapsed()))
    }

    /// Waits until `wanted` accepts the list of tools. Returns the names of the tools. `patience`
    /// limits the time between two changes of the list.
    pub fn until_listed(&self, patience: Duration, wanted: impl Fn(&[String]) -> bool) -> Result<Vec<String>> {
        let mailbox = self.mailbox();
        loop {
            let seen = self.listings().read(|times| *times);
            let tools = mailbox.tools()?;
            if wanted(&tools) {
                return Ok(tools);
            }
            if !self.listings().wait_until(patience, |times| *times > seen) {
                bail!("not everything was loaded within {} s; offered are {}", patience.as_secs(), tools.join(", "));
            }
        }
    }
}

impl Shared {
    fn hear(&self, heard: Heard<'_>, unclaimed: &Unclaimed) {
        let (read, at) = match heard {
            Heard::Line(line, at) => (message::read(line).map_err(|error| format!("{error:#}")), at),
            Heard::Broken(error) => (Err(format!("the server's output cannot be read: {error}")), Instant::now()),
            Heard::End => return self.books.ended(),
        };
        let method = read.as_ref().ok().and_then(|message| message.get("method")?.as_str());
        if method == Some(LIST_CHANGED) {
            self.listings.update(|times| *times += 1);
        }
        // Other lists also change when plugins are added or removed.
        if let (Unclaimed::Judged, Some(method)) = (unclaimed, method)
            && method.ends_with("/list_changed")
        {
            return;
        }
        let left = match read {
            Ok(message) => match self.books.came(message, at) {
                Some(message) => Ok(message),
                None => return,
            },
            Err(error) => Err(error),
        };
        match (unclaimed, left) {
            (Unclaimed::Judged, Ok(message)) => self.books.judge(&message),
            (Unclaimed::Judged, Err(error)) => self.books.fault(&error),
            // If the receiver was dropped, the message is discarded.
            (Unclaimed::HandedOn(to), what) => drop(to.send(Arrived { what, at })),
        }
    }
}
