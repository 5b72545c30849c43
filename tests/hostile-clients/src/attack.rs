//! Runs a hostile client over HTTP. Any end of its connections is acceptable.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use toolbay_testkit::{ClientSocket, ConnectionEnd, HttpReply};

use crate::request::Request;
use crate::session::{Manner, Step, Visit};
use crate::verdict::Verdict;

/// The address of hostile clients.
const ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// Maximum time that the server may ignore a connection. Its own timeouts are a few seconds, and a
/// connection waits five seconds for a place.
const PATIENCE: Duration = Duration::from_secs(20);

/// The pause before each byte of a slow client.
const PAUSE: Duration = Duration::from_millis(15);

/// Number of bytes that are sent one by one.
const SINGLE: usize = 400;

/// Number of stream events after which a client disconnects.
const EVENTS: usize = 3;

/// Number of requests that a client sends without reading responses.
const UNREAD: usize = 2000;

/// Number of occurrences of each kind of end.
pub(crate) type Ends = BTreeMap<String, u64>;

/// A running hostile client.
struct Attack<'a> {
    server: SocketAddr,
    verdict: &'a Verdict,
    /// The ID of the last session that the server created.
    session: String,
    /// Connections that stay open while others are used.
    kept: Vec<ClientSocket>,
    ends: Ends,
}

/// Runs the client of this visit. Returns how its connections and requests ended.
///
/// # Errors
///
/// The server sent a forbidden message, or neither responded nor closed a connection.
pub(crate) fn attack(server: SocketAddr, root: &str, visit: &Visit) -> Result<Ends> {
    let verdict = Verdict::new(root, visit.seed);
    let mut attack = Attack {
        server,
        verdict: &verdict,
        session: "none".to_owned(),
        kept: Vec::new(),
        ends: Ends::new(),
    };
    for (n, step) in visit.steps.iter().enumerate() {
        attack
            .step(step)
            .with_context(|| format!("step {}, {:?}", n + 1, step.manner))?;
    }
    for (n, socket) in std::mem::take(&mut attack.kept).into_iter().enumerate() {
        match n % 3 {
            0 => attack
                .read(socket, false)
                .context("a connection that was kept")?,
            1 => socket.reset(),
            _ => drop(socket),
        }
    }
    Ok(attack.ends)
}

impl Attack<'_> {
    fn step(&mut self, step: &Step) -> Result<()> {
        let texts: Vec<Vec<u8>> = step
            .requests
            .iter()
            .map(|request| request.text.bytes(&self.session))
            .collect();
        let Some((request, text)) = step.requests.first().zip(texts.first()) else {
            return Ok(());
        };
        if let Manner::Crowd(count, part) = step.manner {
            return self.crowd(count, cut(text, part), request);
        }
        let mut socket = match ClientSocket::connect(self.server, ADDRESS, PATIENCE) {
            Ok(socket) => socket,
            Err(ended) => return self.end(&ended),
        };
        match step.manner {
            Manner::Polite => {
                for (request, text) in step.requests.iter().zip(&texts) {
                    // The server may have closed the connection early, after a response with the
                    // reason.
                    drop(socket.send(text));
                    if !self.next(&mut socket, request.is_head)? {
                        return Ok(());
                    }
                }
            }
            Manner::Pipelined => {
                drop(socket.send(&texts.concat()));
                for request in &step.requests {
                    if !self.next(&mut socket, request.is_head)? {
                        return Ok(());
                    }
                }
            }
            Manner::Bytewise => {
                for byte in text.iter().take(SINGLE) {
                    if let Err(ended) = socket.send(&[*byte]) {
                        return self.end(&ended);
                    }
                }
                drop(socket.send(text.get(SINGLE..).unwrap_or_default()));
                self.read(socket, request.is_head)?;
            }
            Manner::Slow => self.slowly(socket, text, request)?,
            Manner::Part(part) => {
                drop(socket.send(cut(text, part)));
                self.read(socket, request.is_head)?;
            }
            Manner::HalfClosed => {
                drop(socket.send(text));
                drop(socket.shutdown_write());
                self.read(socket, request.is_head)?;
            }
            Manner::Deaf => {
                for _ in 0..UNREAD {
                    if let Err(ended) = socket.send(text) {
                        return self.end(&ended);
                    }
                }
                self.count("sent without reading");
            }
            Manner::Reset(part) => {
                drop(socket.send(cut(text, part)));
                socket.reset();
                self.count("reset by the client");
            }
            Manner::Leaves => {
                drop(socket.send(text));
                self.count("left by the client");
            }
            Manner::Kept => {
                drop(socket.send(text));
                self.kept.push(socket);
            }
            // This case is handled above.
            Manner::Crowd(..) => {}
        }
        Ok(())
    }

    fn crowd(&mut self, count: u8, text: &[u8], request: &Request) -> Result<()> {
        let mut sockets = Vec::new();
        for _ in 0..count {
            match ClientSocket::connect(self.server, ADDRESS, PATIENCE) {
                Ok(mut socket) => {
                    drop(socket.send(text));
                    sockets.push(socket);
                }
                Err(ended) => self.end(&ended)?,
            }
        }
        sockets
            .into_iter()
            .try_for_each(|socket| self.read(socket, request.is_head))
    }

    /// Sends one byte at a time, until the server responds or closes the connection.
    fn slowly(&mut self, mut socket: ClientSocket, text: &[u8], request: &Request) -> Result<()> {
        let waits = socket.set_read_timeout(PAUSE);
        for byte in text.iter().take(SINGLE) {
            match waits.clone().and_then(|()| socket.read()) {
                Err(ConnectionEnd::TimedOut) => {}
                _ => break,
            }
            if socket.send(&[*byte]).is_err() {
                break;
            }
        }
        drop(socket.set_read_timeout(PATIENCE));
        self.read(socket, request.is_head)
    }

    /// Reads one reply, or a part of it if the connection ends.
    fn read(&mut self, mut socket: ClientSocket, is_head: bool) -> Result<()> {
        self.next(&mut socket, is_head).map(drop)
    }

    /// Reads the next reply. Returns false if no other reply can follow.
    fn next(&mut self, socket: &mut ClientSocket, is_head: bool) -> Result<bool> {
        loop {
            match socket.take_reply(is_head) {
                Ok(Some(reply)) => {
                    self.judge(&reply, is_head)?;
                    return Ok(reply.header("connection") != Some("close"));
                }
                Ok(None) => {}
                Err(ended) => return self.end(&ended).map(|()| false),
            }
            if let Ok(Some(begun)) = socket.partial_reply()
                && begun.is_stream()
                && begun.body.windows(2).filter(|pair| pair == b"\n\n").count() >= EVENTS
            {
                self.judge(&begun, is_head)?;
                self.count("left a stream");
                return Ok(false);
            }
            if let Err(ended) = socket.read() {
                // A truncated reply must be valid as far as it was received.
                if let Ok(Some(begun)) = socket.partial_reply() {
                    self.judge(&begun, is_head)?;
                }
                return self.end(&ended).map(|()| false);
            }
        }
    }

    fn judge(&mut self, reply: &HttpReply, is_head: bool) -> Result<()> {
        self.verdict.reply(reply, is_head)?;
        if let Some(session) = reply.header("mcp-session-id") {
            session.clone_into(&mut self.session);
        }
        self.count(&reply.status.to_string());
        Ok(())
    }

    /// Records an end of a connection that the client did not cause.
    fn end(&mut self, ended: &ConnectionEnd) -> Result<()> {
        match ended {
            ConnectionEnd::Closed => self.count("closed"),
            ConnectionEnd::ConnectionFailed(_) => self.count("broken"),
            ConnectionEnd::TimedOut => {
                bail!("the server neither answered nor closed the connection for {PATIENCE:?}")
            }
            ConnectionEnd::InvalidHttp(why) => bail!("what the server sent is not HTTP: {why}"),
        }
        Ok(())
    }

    fn count(&mut self, end: &str) {
        *self.ends.entry(end.to_owned()).or_default() += 1;
    }
}

/// Returns the first `part` percent of a text.
fn cut(text: &[u8], part: u8) -> &[u8] {
    text.get(..text.len() * usize::from(part) / 100)
        .unwrap_or(text)
}
