//! A server under measurement: starts it, initializes it, sends requests and stops it.

use std::fs::File;
use std::io::{Read as _, Seek as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use toolbay_testkit::{DEADLINE, message, revision};

use super::poll::Poll;
use super::usage::{self, Memory};
use super::wire::Wire;
use crate::pause;

/// The transport to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Via {
    /// Standard input and output, in a session.
    Stdio,
    /// HTTP, with a session for each connection.
    Session,
    /// HTTP without sessions.
    Stateless,
}

/// Returns the command that starts a server. With an address, the server listens for HTTP.
pub type Launch<'a> = dyn Fn(Option<SocketAddr>) -> Command + 'a;

/// A running server. Dropping it stops it.
pub struct Server {
    child: Child,
    /// Its address, if it uses HTTP.
    address: Option<SocketAddr>,
    pub(crate) via: Via,
    pub(crate) wires: Vec<Wire>,
    pub(crate) poll: Poll,
    /// The time of its start.
    pub started: Instant,
    asked: u64,
    errors: File,
}

impl Server {
    /// Starts a server, connects once, and starts a session if the transport has sessions.
    pub fn start(launch: &Launch<'_>, via: Via) -> Result<Self> {
        let address = match via {
            Via::Stdio => None,
            Via::Session | Via::Stateless => Some(free()?),
        };
        let errors = tempfile::tempfile().context("no file for what the server says")?;
        let mut command = launch(address);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(errors.try_clone()?);
        let started = Instant::now();
        let child = command
            .spawn()
            .with_context(|| format!("failed to start {}", command.get_program().display()))?;
        let poll = Poll::new()?;
        let mut server = Self {
            child,
            address,
            via,
            wires: Vec::new(),
            poll,
            started,
            asked: 0,
            errors,
        };
        match server.connect(1) {
            Ok(()) => Ok(server),
            Err(error) => Err(server.explained(error)),
        }
    }

    /// Changes how an HTTP server is used, over new connections.
    pub fn change(&mut self, via: Via, connections: usize) -> Result<()> {
        self.wires.clear();
        self.poll = Poll::new()?;
        self.via = via;
        self.connect(connections)
    }

    /// Connects until this number of connections is open.
    pub fn connect(&mut self, connections: usize) -> Result<()> {
        while self.wires.len() < connections {
            let wire = match self.address {
                None => {
                    ensure!(self.wires.is_empty(), "there is one pipe");
                    let input = self.child.stdin.take().context("no standard input")?;
                    Wire::pipes(
                        input,
                        self.child.stdout.take().context("no standard output")?,
                    )?
                }
                Some(address) => self.reach(address)?,
            };
            let place = self.wires.len();
            self.poll.watch(&wire, place)?;
            self.wires.push(wire);
            if self.via != Via::Stateless {
                self.exchange(
                    place,
                    "initialize",
                    message::initialize_params(revision::NEWEST_SESSION_REVISION),
                )?;
                self.notify(place, "notifications/initialized")?;
            }
        }
        Ok(())
    }

    /// Reconnects where the server has closed an idle connection, as clients do.
    pub(crate) fn reconnect(&mut self) -> Result<()> {
        let Some(address) = self.address else {
            return Ok(());
        };
        for place in 0..self.wires.len() {
            let Some(wire) = self.wires.get_mut(place) else {
                continue;
            };
            if !wire.has_ended() {
                continue;
            }
            let session = wire.session.take();
            let mut wire = self.reach(address)?;
            wire.session = session;
            self.poll.watch(&wire, place)?;
            if let Some(old) = self.wires.get_mut(place) {
                *old = wire;
            }
        }
        Ok(())
    }

    /// Connects as soon as the server listens.
    fn reach(&mut self, address: SocketAddr) -> Result<Wire> {
        let deadline = Instant::now() + DEADLINE;
        loop {
            match Wire::connect(address) {
                Ok(wire) => return Ok(wire),
                Err(error) => ensure!(
                    Instant::now() < deadline,
                    "the server cannot be reached: {error}"
                ),
            }
            if let Some(status) = self.child.try_wait()? {
                bail!("the server ended: {status}");
            }
            pause(Duration::from_millis(1));
        }
    }

    /// Returns the result of a request over the first connection.
    pub fn ask(&mut self, method: &str, params: Value) -> Result<Value> {
        let result = self.exchange(0, method, params);
        result.map_err(|error| self.explained(error))
    }

    /// Waits until the list of tools is complete.
    pub fn until_listed(&mut self, is_complete: impl Fn(&[String]) -> bool) -> Result<()> {
        self.until_listed_within(DEADLINE, is_complete)
    }

    /// Like [`Self::until_listed`], with this timeout, for lists that take long.
    pub fn until_listed_within(
        &mut self,
        patience: Duration,
        is_complete: impl Fn(&[String]) -> bool,
    ) -> Result<()> {
        let deadline = Instant::now() + patience;
        loop {
            let tools = message::list_all_tools(|params| self.ask("tools/list", params))?;
            let names = message::tool_names(&tools);
            if is_complete(&names) {
                return Ok(());
            }
            ensure!(
                Instant::now() < deadline,
                "{} tools are listed, and not all of them",
                names.len()
            );
            pause(Duration::from_millis(1));
        }
    }

    /// Returns the CPU time used so far.
    pub fn cpu(&self) -> Result<Duration> {
        usage::cpu(self.child.id())
    }

    /// Returns its current memory.
    pub fn memory(&self) -> Result<Memory> {
        usage::memory(self.child.id())
    }

    fn exchange(&mut self, place: usize, method: &str, params: Value) -> Result<Value> {
        self.asked += 1;
        // These IDs are separate from the small ones of measured calls.
        let id = (1 << 52) + self.asked;
        let request = match self.via {
            Via::Stateless => {
                message::stateless_request(revision::FIRST_STATELESS_REVISION, id, method, params)
            }
            Via::Stdio | Via::Session => message::request(id, method, &params),
        };
        let name = request
            .pointer("/params/name")
            .and_then(Value::as_str)
            .map(str::to_owned);
        self.queue(
            place,
            request.to_string().as_bytes(),
            method,
            name.as_deref(),
        )?;
        let said = self
            .receive(place, id)
            .with_context(|| format!("no answer to {method}"))?;
        message::parse_response(said)?.with_context(|| format!("{method} failed"))
    }

    fn notify(&mut self, place: usize, method: &str) -> Result<()> {
        let text = message::notification(method, &json!({})).to_string();
        self.queue(place, text.as_bytes(), method, None)?;
        let wire = self.wires.get_mut(place).context("no connection")?;
        if !wire.is_socket() {
            wire.flush()?;
            return Ok(());
        }
        self.wait_for(place, |wire| Ok(wire.response()?.map(drop)))
    }

    fn receive(&mut self, place: usize, id: u64) -> Result<Value> {
        self.wait_for(place, |wire| {
            if wire.is_socket() {
                let Some(response) = wire.response()? else {
                    return Ok(None);
                };
                return message::parse_line(&response.message).map(Some);
            }
            while let Some(line) = wire.line() {
                let message = message::parse_line(line)?;
                if message.get("id").is_some_and(|said| *said == id) {
                    return Ok(Some(message));
                }
            }
            Ok(None)
        })
    }

    /// Sends and receives until `found` returns a value.
    fn wait_for<T>(
        &mut self,
        place: usize,
        mut found: impl FnMut(&mut Wire) -> Result<Option<T>>,
    ) -> Result<T> {
        let deadline = Instant::now() + DEADLINE;
        let wire = self.wires.get_mut(place).context("no connection")?;
        loop {
            let all_sent = wire.flush()?;
            self.poll.wants_to_write(wire, place, !all_sent)?;
            let events = self.poll.wait(Some(deadline))?;
            ensure!(
                !events.is_empty() || Instant::now() < deadline,
                "it took more than {} s",
                DEADLINE.as_secs()
            );
            if events
                .iter()
                .any(|event| event.place == place && event.can_read)
            {
                wire.fill()?;
                if let Some(found) = found(wire)? {
                    return Ok(found);
                }
            }
        }
    }

    /// Queues a message in the format of the transport.
    pub(crate) fn queue(
        &mut self,
        place: usize,
        text: &[u8],
        method: &str,
        name: Option<&str>,
    ) -> Result<()> {
        let via = self.via;
        let address = self.address;
        let wire = self.wires.get_mut(place).context("no connection")?;
        let Some(address) = address else {
            wire.queue(text);
            wire.queue(b"\n");
            return Ok(());
        };
        let headers = match (via, &wire.session) {
            (Via::Stateless, _) => {
                let name = name
                    .map(|name| format!("Mcp-Name: {name}\r\n"))
                    .unwrap_or_default();
                format!(
                    "MCP-Protocol-Version: {}\r\nMcp-Method: {method}\r\n{name}",
                    revision::FIRST_STATELESS_REVISION
                )
            }
            (_, Some(session)) => {
                format!(
                    "MCP-Protocol-Version: {}\r\nMcp-Session-Id: {session}\r\n",
                    revision::NEWEST_SESSION_REVISION
                )
            }
            (_, None) => String::new(),
        };
        let head = format!(
            "POST /mcp HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\nContent-Length: {}\r\n{headers}\r\n",
            text.len()
        );
        wire.queue(head.as_bytes());
        wire.queue(text);
        Ok(())
    }

    /// Adds the last lines of the server's log to an error.
    pub(crate) fn explained(&mut self, error: anyhow::Error) -> anyhow::Error {
        let mut said = String::new();
        let read = self
            .errors
            .rewind()
            .and_then(|()| self.errors.read_to_string(&mut said));
        let lines: Vec<&str> = said.lines().rev().take(10).collect();
        if read.is_err() || lines.is_empty() {
            return error;
        }
        let last: Vec<&str> = lines.into_iter().rev().collect();
        error.context(format!(
            "the server's standard error ends:\n{}",
            last.join("\n")
        ))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // This closes the server's input.
        self.wires.clear();
        drop(self.child.stdin.take());
        if self.address.is_some()
            && let Some(pid) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw)
        {
            // The process may have exited.
            let _ = kill_process(pid, Signal::TERM);
        }
        let deadline = Instant::now() + Duration::from_secs(1);
        while Instant::now() < deadline {
            if matches!(self.child.try_wait(), Ok(Some(_))) {
                return;
            }
            pause(Duration::from_millis(1));
        }
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Returns an address with a free port.
fn free() -> Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no port is free")?;
    listener.local_addr().context("no port is free")
}
