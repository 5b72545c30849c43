//! A conversation with a real server that any number of callers share. Their requests are in flight together, and books
//! are kept of whether each is answered, once.

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

/// What becomes of a message that belongs to no caller's request.
#[derive(Debug)]
pub enum Unclaimed {
    /// It is judged: what nobody can expect is a fault in the books.
    Judged,
    /// It is handed on, and so is a line that is no message, as an error.
    HandedOn(Sender<Arrived<Result<Value, String>>>),
}

/// A server, and everything that is said to it and by it.
#[derive(Debug)]
pub struct Connection {
    process: Process,
    shared: Arc<Shared>,
}

/// What the thread that reads from the server tells everybody else.
#[derive(Debug, Default)]
struct Shared {
    books: Books,
    /// How often the server has said that its list of tools changed.
    listings: Signal<u64>,
}

impl Connection {
    /// Starts a command that serves on its standard streams; no word is said yet. `log` takes in what it logs.
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

    /// Shakes hands in a revision with sessions; returns what the server says of itself.
    pub fn initialize(&self, revision: &str) -> Result<Arrived<Value>> {
        let mailbox = self.mailbox();
        let answer = mailbox.answer(mailbox.request("initialize", &message::hello(revision))?)?;
        let result = answer.what.context("initialize was refused")?;
        self.send(&message::notification("notifications/initialized", &json!({})))?;
        Ok(Arrived { what: result, at: answer.at })
    }

    /// A place for one more caller.
    pub fn mailbox(&self) -> Mailbox<'_> {
        Mailbox::new(self.process(), self.books())
    }

    /// The server's process.
    pub fn process(&self) -> &Process {
        &self.process
    }

    /// The same, to end it.
    pub fn process_mut(&mut self) -> &mut Process {
        &mut self.process
    }

    /// The server's process id.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// What was asked by way of mailboxes, and answered.
    pub fn books(&self) -> &Books {
        &self.shared.books
    }

    /// How often the server has said that its list of tools changed.
    pub fn listings(&self) -> &Signal<u64> {
        &self.shared.listings
    }

    /// Tells the server that nobody waits for this request any more.
    pub fn cancel(&self, id: u64) -> Result<()> {
        self.books().cancelled(id);
        let params = json!({"requestId": id, "reason": "as asked"});
        self.send(&message::notification("notifications/cancelled", &params))
    }

    /// Sends a line that is no request, which must be answered with an error that names none.
    pub fn send_garbage(&self, line: &str) -> Result<()> {
        self.books().garbage_sent();
        self.process.write_line(line)
    }

    /// Sends a message.
    pub fn send(&self, message: &Value) -> Result<()> {
        self.process.write_line(message)
    }

    /// Ends the server's input and waits until the server has ended; returns its status and how long that took. One
    /// that does not end within `patience` is killed, and that is an error.
    pub fn end(mut self, patience: Duration) -> Result<(ExitStatus, Duration)> {
        let began = Instant::now();
        self.process.close_input();
        let status = self.process.wait(patience)?;
        Ok((status, began.elapsed()))
    }

    /// Waits until the list of tools has all that `wanted` looks for.
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
        if let Ok(message) = &read
            && message.get("method").is_some_and(|method| method == LIST_CHANGED)
        {
            self.listings.update(|times| *times += 1);
            if let Unclaimed::Judged = unclaimed {
                return;
            }
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
            // Whoever does not listen any more does not want it.
            (Unclaimed::HandedOn(to), what) => drop(to.send(Arrived { what, at })),
        }
    }
}
