//! An honest client, which calls a light tool on one connection.

use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde_json::json;
use toolbay_testkit::{
    ClientSocket, ConnectionEnd, DEADLINE, HttpReply, message, other_local_address, revision,
};

use crate::fairness::pause;

/// The time between a response and the next call.
const PAUSE: Duration = Duration::from_millis(20);

/// An honest client.
pub(super) struct Honest {
    server: SocketAddr,
    /// The address of honest clients. It differs from the address of hostile clients.
    address: IpAddr,
    socket: Option<ClientSocket>,
    calls: u64,
}

impl Honest {
    /// # Errors
    ///
    /// The machine has no other address.
    pub(super) fn new(server: SocketAddr) -> Result<Self> {
        Ok(Self {
            server,
            address: other_local_address()?.into(),
            socket: None,
            calls: 0,
        })
    }

    /// Returns whether a call gets its result.
    pub(super) fn is_served(&mut self) -> bool {
        self.call().is_ok_and(|served| served)
    }

    /// Calls until `end`. Returns the duration of each call, and the number of rejected calls.
    ///
    /// # Errors
    ///
    /// A call got a wrong result.
    pub(super) fn go_on(mut self, end: Instant) -> Result<(Vec<Duration>, u64)> {
        let mut all = Vec::new();
        let mut refused = 0;
        while Instant::now() < end {
            let began = Instant::now();
            if self.call()? {
                all.push(began.elapsed());
            } else {
                refused += 1;
            }
            pause(PAUSE);
        }
        Ok((all, refused))
    }

    /// Returns true if a call was served, and false if it was rejected or its connection ended.
    fn call(&mut self) -> Result<bool> {
        self.calls += 1;
        let params = json!({"name": "light", "arguments": {}});
        let body = message::stateless_request(
            revision::FIRST_STATELESS_REVISION,
            self.calls,
            "tools/call",
            params,
        )
        .to_string();
        let text = post(
            &format!(
                "Mcp-Method: tools/call\r\nMcp-Name: light\r\n{}",
                stateless()
            ),
            &body,
        );
        let Ok(reply) = self.exchange(text.as_bytes()) else {
            self.socket = None;
            return Ok(false);
        };
        if reply.status != 200 {
            return Ok(false);
        }
        let answer = reply.response_message()?;
        ensure!(
            answer.get("id").is_some_and(|id| *id == self.calls),
            "call {} got {answer}",
            self.calls
        );
        // While the tool is not loaded, the response is an error.
        let Ok(result) = message::parse_response(answer)? else {
            return Ok(false);
        };
        if message::is_error(&result) {
            return Ok(false);
        }
        ensure!(
            message::result_text(&result) == "fine",
            "a call got {result}"
        );
        Ok(true)
    }

    fn exchange(&mut self, text: &[u8]) -> Result<HttpReply, ConnectionEnd> {
        let mut socket = match self.socket.take() {
            Some(socket) => socket,
            None => ClientSocket::connect(self.server, self.address, DEADLINE)?,
        };
        socket.send(text)?;
        let reply = socket.wait_for_reply(false)?;
        self.socket = Some(socket);
        Ok(reply)
    }
}

/// Returns the header that states the revision.
pub(super) fn stateless() -> String {
    format!(
        "MCP-Protocol-Version: {}\r\n",
        revision::FIRST_STATELESS_REVISION
    )
}

/// Returns a POST with these headers and the ones that every POST has.
pub(super) fn post(headers: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\n{headers}Content-Length: {length}\r\n\r\n{body}"
    )
}
