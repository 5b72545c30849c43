//! A conversation with a real server that many callers share: their requests are in flight together, and books are
//! kept of whether each is answered, once.

mod books;
mod log;
mod mailbox;

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ExitStatus};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::server;
use crate::signal::Signal;
pub(crate) use books::Books;
pub(crate) use log::Log;
pub(crate) use mailbox::{Event, Mailbox, PATIENCE};

/// A server, and everything that is said to it and by it.
pub(crate) struct Connection {
    child: Child,
    /// Taken when the conversation ends.
    input: Mutex<Option<ChildStdin>>,
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

/// What the threads that read from the server tell everybody else.
#[derive(Default)]
struct Shared {
    books: Books,
    log: Signal<Log>,
    /// How often the server has said that its list of tools changed.
    listings: Signal<u64>,
}

impl Connection {
    /// Starts `server` in the folder `root` on the plugins in `root/plugins`, and shakes hands.
    pub(crate) fn start(server: &Path, root: &Path) -> Result<Self> {
        let mut child =
            server::command(server, root).spawn().with_context(|| format!("failed to start {}", server.display()))?;
        let stdout = child.stdout.take().context("no standard output")?;
        let stderr = child.stderr.take().context("no standard error")?;
        let input = Mutex::new(child.stdin.take());
        let shared = Arc::new(Shared::default());
        let threads = vec![read(stdout, &shared, Shared::message), read(stderr, &shared, Shared::logged)];
        let connection = Self { child, input, shared, threads };
        let mailbox = connection.mailbox();
        let id = mailbox.request("initialize", &server::hello("toolbay-xtask"))?;
        if let Err(refusal) = mailbox.answer(id).with_context(|| connection.last_words())?.what {
            bail!("initialize was answered with {} {}", refusal.code, refusal.message);
        }
        connection.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))?;
        Ok(connection)
    }

    /// A place for one more caller.
    pub(crate) fn mailbox(&self) -> Mailbox<'_> {
        Mailbox::new(self)
    }

    /// The server's process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What was asked and answered.
    pub(crate) fn books(&self) -> &Books {
        &self.shared.books
    }

    /// What the server logged.
    pub(crate) fn log(&self) -> &Signal<Log> {
        &self.shared.log
    }

    /// How often the server has said that its list of tools changed.
    pub(crate) fn listings(&self) -> &Signal<u64> {
        &self.shared.listings
    }

    /// Tells the server that nobody waits for this request any more.
    pub(crate) fn cancel(&self, id: u64) -> Result<()> {
        self.books().cancelled(id);
        let params = json!({"requestId": id, "reason": "as asked"});
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}))
    }

    /// Sends a line that is no request, which must be answered with an error that names none.
    pub(crate) fn send_garbage(&self, line: &str) -> Result<()> {
        self.books().garbage_sent();
        self.send_line(line.to_owned())
    }

    /// Ends the server's input.
    pub(crate) fn close_input(&self) {
        drop(self.input.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    /// Ends the server's input and waits until the server has ended; says how long that took. One that does not end
    /// within `patience` is killed, and that is an error.
    pub(crate) fn end(mut self, patience: Duration) -> Result<(ExitStatus, Duration)> {
        let began = Instant::now();
        self.close_input();
        let ended = self.books().wait_for_end(patience);
        if !ended {
            drop(self.child.kill());
        }
        let status = self.child.wait().context("failed to wait for the server")?;
        let took = began.elapsed();
        for thread in self.threads.drain(..) {
            // One that panicked has said so.
            drop(thread.join());
        }
        if ended { Ok((status, took)) } else { bail!("the server did not end within {} s", patience.as_secs()) }
    }

    /// The end of the log, for errors.
    pub(crate) fn last_words(&self) -> String {
        format!("the server's log ends:\n{}", self.log().read(|log| log.tail().join("\n")))
    }

    fn send(&self, message: &Value) -> Result<()> {
        self.send_line(message.to_string())
    }

    fn send_line(&self, mut line: String) -> Result<()> {
        line.push('\n');
        let mut input = self.input.lock().unwrap_or_else(PoisonError::into_inner);
        let input = input.as_mut().context("the conversation has ended")?;
        input.write_all(line.as_bytes()).context("the server has gone")
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if !self.threads.is_empty() {
            drop(self.child.kill());
            drop(self.child.wait());
        }
    }
}

impl Shared {
    fn message(&self, line: Option<(&str, Instant)>) {
        let Some((line, at)) = line else { return self.books.ended() };
        match serde_json::from_str::<Value>(line) {
            Ok(message) if message.get("method").is_some_and(|name| name == "notifications/tools/list_changed") => {
                self.listings.update(|times| *times += 1);
            }
            Ok(message) => self.books.came(message, at),
            Err(error) => self.books.fault(&format!("a line is not JSON: {error}: {line}")),
        }
    }

    fn logged(&self, line: Option<(&str, Instant)>) {
        if let Some((line, _)) = line {
            self.log.update(|log| log.take(line));
        }
    }
}

/// Hands each line of a stream over with the moment at which it came, and `None` at the end.
fn read(
    stream: impl Read + Send + 'static,
    shared: &Arc<Shared>,
    hand_over: fn(&Shared, Option<(&str, Instant)>),
) -> JoinHandle<()> {
    let shared = Arc::clone(shared);
    thread::spawn(move || {
        let mut stream = BufReader::with_capacity(256 << 10, stream);
        let mut line = String::new();
        loop {
            line.clear();
            match stream.read_line(&mut line) {
                Ok(1..) => hand_over(&shared, Some((line.trim_end(), Instant::now()))),
                Ok(0) => return hand_over(&shared, None),
                Err(error) => {
                    shared.books.fault(&format!("the server's output cannot be read: {error}"));
                    return hand_over(&shared, None);
                }
            }
        }
    })
}
