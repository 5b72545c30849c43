//! An honest client over HTTP, which must be served regardless of other clients.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use serde_json::{Value, json};
use toolbay_testkit::{
    ClientSocket, ConnectionEnd, HttpReply, ObservableValue, message, other_local_address, revision,
};

use crate::plugins::large;
use crate::verdict::HUSH;

/// Maximum time until a response. On an idle server, it takes a millisecond.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// The time between two requests.
const PAUSE: Duration = Duration::from_millis(3);

/// An honest client.
#[derive(Debug)]
pub(crate) struct Honest {
    server: SocketAddr,
    /// Its unique name.
    name: String,
    socket: Option<ClientSocket>,
    /// The ID of its session.
    session: Option<String>,
    asked: u64,
    /// The longest time until a response.
    pub(crate) slowest: Duration,
}

impl Honest {
    pub(crate) fn new(server: SocketAddr, name: &str) -> Self {
        let name = format!("{HUSH}{name}-");
        Self {
            server,
            name,
            socket: None,
            session: None,
            asked: 0,
            slowest: Duration::ZERO,
        }
    }

    /// Sends all kinds of requests repeatedly until the signal, then ends its session.
    pub(crate) fn go_on(&mut self, over: &ObservableValue<bool>) -> Result<u64> {
        let began = self.asked;
        while !over.wait_until(PAUSE, |over| *over) {
            self.ask()?;
        }
        self.leave()?;
        Ok(self.asked - began)
    }

    /// Makes the server reach its maximum size without hostile clients. The results of the calls
    /// are ignored.
    pub(crate) fn warm_up(&mut self) -> Result<()> {
        for (tool, arguments) in large() {
            self.result(
                "tools/call",
                json!({"name": tool, "arguments": arguments}),
                None,
            )?;
        }
        self.ask()
    }

    /// Sends each kind of request once.
    pub(crate) fn ask(&mut self) -> Result<()> {
        self.without_session()
            .context("an honest client without a session")?;
        self.in_session().context("an honest client in a session")
    }

    fn without_session(&mut self) -> Result<()> {
        let discovered = self.result("server/discover", json!({}), None)?;
        let newest = revision::session_revisions(&discovered)?.pop();
        ensure!(
            newest.as_deref() == Some(revision::NEWEST_SESSION_REVISION),
            "server/discover gave {discovered}"
        );
        self.calls(None)
    }

    fn in_session(&mut self) -> Result<()> {
        let session = match &self.session {
            Some(session) => session.clone(),
            None => self.begin()?,
        };
        let pong = self.result("ping", json!({}), Some(&session))?;
        ensure!(pong == json!({}), "ping gave {pong}");
        self.calls(Some(&session))
    }

    fn calls(&mut self, session: Option<&str>) -> Result<()> {
        let said = json!({"said": format!("{}{}", self.name, self.asked)});
        let result = self.result(
            "tools/call",
            json!({"name": "echo", "arguments": said}),
            session,
        )?;
        let echoed: Value = serde_json::from_str(&message::result_text(&result))
            .with_context(|| format!("it gave {result}"))?;
        ensure!(
            echoed == said && !message::is_error(&result),
            "for {said}, it gave {result}"
        );
        let result = self.result(
            "tools/call",
            json!({"name": "bystander", "arguments": {}}),
            session,
        )?;
        ensure!(
            message::result_text(&result) == "here" && !message::is_error(&result),
            "the bystander gave {result}"
        );
        Ok(())
    }

    /// Starts a session.
    fn begin(&mut self) -> Result<String> {
        let hello = message::request(
            self.id(),
            "initialize",
            &message::initialize_params(revision::NEWEST_SESSION_REVISION),
        );
        let reply = self.exchange("POST", "", &hello.to_string())?;
        let session = reply
            .header("mcp-session-id")
            .context("initialize gave no session")?
            .to_owned();
        let ready = message::notification("notifications/initialized", &json!({})).to_string();
        let reply = self.exchange("POST", &format!("Mcp-Session-Id: {session}\r\n"), &ready)?;
        ensure!(
            reply.status == 202,
            "notifications/initialized gave {}",
            reply.status
        );
        self.session = Some(session.clone());
        Ok(session)
    }

    /// Ends the session and the connection.
    pub(crate) fn leave(&mut self) -> Result<()> {
        if let Some(session) = self.session.take() {
            let reply = self.exchange("DELETE", &format!("Mcp-Session-Id: {session}\r\n"), "")?;
            ensure!(
                reply.status == 204 || reply.status == 200,
                "the end of a session gave {}",
                reply.status
            );
        }
        self.socket = None;
        Ok(())
    }

    fn id(&mut self) -> String {
        self.asked += 1;
        format!("{}{}", self.name, self.asked)
    }

    /// Returns the result of a request, in a session or without one.
    fn result(&mut self, method: &str, params: Value, session: Option<&str>) -> Result<Value> {
        let id = self.id();
        let named = params
            .get("name")
            .and_then(Value::as_str)
            .map(|name| format!("Mcp-Name: {name}\r\n"));
        let (headers, body) = match session {
            Some(session) => (
                format!("Mcp-Session-Id: {session}\r\n"),
                message::request(id.as_str(), method, &params),
            ),
            None => (
                format!(
                    "MCP-Protocol-Version: {}\r\nMcp-Method: {method}\r\n{}",
                    revision::FIRST_STATELESS_REVISION,
                    named.unwrap_or_default()
                ),
                message::stateless_request(
                    revision::FIRST_STATELESS_REVISION,
                    id.as_str(),
                    method,
                    params,
                ),
            ),
        };
        let reply = self
            .exchange("POST", &headers, &body.to_string())
            .with_context(|| method.to_owned())?;
        let answer = reply
            .response_message()
            .with_context(|| method.to_owned())?;
        ensure!(
            reply.status == 200,
            "{method} gave {} and {answer}",
            reply.status
        );
        ensure!(
            answer.get("id").is_some_and(|found| *found == id),
            "request {id} got {answer}"
        );
        message::parse_response(answer)?.with_context(|| method.to_owned())
    }

    /// Sends a request and reads its reply, which may be a stream.
    fn exchange(&mut self, method: &str, headers: &str, body: &str) -> Result<HttpReply> {
        let length = body.len();
        let text = format!(
            "{method} /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\n{headers}Content-Length: {length}\r\n\r\n{body}"
        );
        let began = Instant::now();
        let kept = self.socket.take();
        let was_kept = kept.is_some();
        let mut socket = match kept {
            Some(socket) => socket,
            None => self.connect()?,
        };
        let mut reply = send(&mut socket, &text);
        // The server may have closed a connection that was idle for a while.
        if was_kept
            && matches!(
                reply,
                Err(ConnectionEnd::Closed | ConnectionEnd::ConnectionFailed(_))
            )
        {
            socket = self.connect()?;
            reply = send(&mut socket, &text);
        }
        let reply = reply.map_err(|ended| {
            anyhow!("no whole answer came after {:?}: {ended}", began.elapsed())
        })?;
        let took = began.elapsed();
        ensure!(took < PATIENCE, "an answer took {took:?}");
        self.slowest = self.slowest.max(took);
        if reply.header("connection") != Some("close") {
            self.socket = Some(socket);
        }
        Ok(reply)
    }

    /// Connects from another address than the one of hostile clients, so that per-address limits
    /// are separate.
    fn connect(&self) -> Result<ClientSocket> {
        let address = other_local_address()?.into();
        ClientSocket::connect(self.server, address, PATIENCE)
            .map_err(|ended| anyhow!("no connection: {ended}"))
    }
}

fn send(socket: &mut ClientSocket, text: &str) -> Result<HttpReply, ConnectionEnd> {
    socket.send(text.as_bytes())?;
    socket.wait_for_reply(false)
}
