//! Calls that wait for a user hold no guest and little memory.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use super::*;
use crate::memory::resident;

/// Number of calls that wait at once.
const WAITING: usize = 1_000;

/// A connection of a session that sends one request after the other.
struct Connection(TcpStream);

impl Connection {
    fn open(server: &HttpServer) -> Self {
        let stream = TcpStream::connect(server.address).unwrap();
        stream
            .set_read_timeout(Some(crate::support::DEADLINE))
            .unwrap();
        Self(stream)
    }

    fn send(&mut self, session: &str, message: &Value) {
        let body = message.to_string();
        let head = format!(
            "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\nMcp-Session-Id: {session}\r\n\
             MCP-Protocol-Version: 2025-11-25\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        self.0
            .write_all(format!("{head}{body}").as_bytes())
            .unwrap();
    }

    /// Reads until the text contains `wanted`.
    fn read_until(&mut self, wanted: &str) -> String {
        let mut read = String::new();
        let mut buffer = [0; 4096];
        while !read.contains(wanted) {
            let length = self.0.read(&mut buffer).unwrap();
            assert!(length > 0, "{wanted:?} never came: {read}");
            read.push_str(std::str::from_utf8(&buffer[..length]).unwrap());
        }
        read
    }
}

/// Returns the number after `name` in a message.
fn number_after(text: &str, name: &str) -> Value {
    let rest = text
        .split_once(name)
        .unwrap_or_else(|| panic!("{name}: {text}"))
        .1;
    serde_json::Deserializer::from_str(rest)
        .into_iter()
        .next()
        .unwrap()
        .unwrap()
}

#[test]
fn a_thousand_calls_that_wait_for_a_person_hold_no_guest_and_little_memory() {
    let folder = folder("[limits]\nconcurrency = 1");
    // An instance that is retained for the next call takes as much memory as hundreds of waits.
    let config = "[server]\ncalls = 2\nsuspended_calls = 0\nqueue = 10000\n[caller_rate_limit]\ncalls = 100000\nper = \"1m\"\n[rate_limit]\ncalls = 100000\nper = \"1m\"\n[http]\nconnections = 3000\nconnections_per_address = 3000\nrequests_per_caller = 3000";
    let server = start_http_with_config(&folder, config);
    let hello = json!({"protocolVersion": "2025-11-25", "capabilities": all_capabilities(), "clientInfo": {"name": "t", "version": "1"}});
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello});
    let response = server.post(&[], hello.to_string().as_bytes());
    let session = response.header("mcp-session-id").unwrap().to_owned();
    drop(response.response_message());
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    drop(
        server
            .post(
                &[
                    ("Mcp-Session-Id", &session),
                    ("MCP-Protocol-Version", "2025-11-25"),
                ],
                ready.to_string().as_bytes(),
            )
            .text(),
    );
    let call = |id: usize| {
        let params = steps(json!([{"ask": [form("who")]}]));
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
    };
    // Each connection has had a call before, so that the measurement excludes the memory of
    // connections and of the server's history of recent calls.
    let used = |n: usize| {
        let mut connection = Connection::open(&server);
        let params = steps(json!([{"exists": "/"}]));
        connection.send(
            &session,
            &json!({"jsonrpc": "2.0", "id": WAITING + n, "method": "tools/call", "params": params}),
        );
        connection.read_until("\"result\"");
        connection
    };
    let mut connections: Vec<Connection> = (0..WAITING).map(used).collect();
    let mut first = Connection::open(&server);
    first.send(&session, &call(3 * WAITING));
    first.read_until("elicitation/create");
    let before = resident(server.pid());
    let mut questions = Vec::new();
    for (n, connection) in connections.iter_mut().enumerate() {
        connection.send(&session, &call(n + 1));
        let read = connection.read_until("elicitation/create");
        questions.push(number_after(&read, "\"id\":"));
    }
    let after = resident(server.pid());
    let each = (after.saturating_sub(before) << 10) / WAITING as u64;
    println!("{each} bytes for each waiting call");
    // About 1 KiB of this is the stream with its question, which is retained for a client that has
    // to reconnect.
    assert!(each < 6 << 10, "{each} bytes for each waiting call");
    // One slot of the plugin and two of the server are enough for other calls.
    assert_eq!(
        step_outputs(
            &send_stateless(
                &server,
                "tools/call",
                steps(json!([{"exists": "/"}])),
                &json!({})
            )["result"]
        )
        .len(),
        1
    );
    for (question, connection) in questions.into_iter().zip(&mut connections).rev() {
        let answer = json!({"jsonrpc": "2.0", "id": question, "result": accept_answer("Ada")});
        let headers = [
            ("Mcp-Session-Id", session.as_str()),
            ("MCP-Protocol-Version", "2025-11-25"),
        ];
        assert_eq!(
            server.post(&headers, answer.to_string().as_bytes()).status,
            202
        );
        connection.read_until("Ada");
    }
}

/// In a stateless request, the client holds the state of the wait.
#[test]
fn a_waiting_call_without_a_session_uses_no_memory() {
    let folder = folder("");
    let server = start_http_with_config(
        &folder,
        // The console retains a bounded number of completed calls, and each of these calls is
        // completed.
        "[caller_rate_limit]\ncalls = 100000\nper = \"1m\"\n[rate_limit]\ncalls = 100000\nper = \"1m\"\n\
         [console]\nenabled = false",
    );
    let call = steps(json!([{"ask": [form("who")]}]));
    let ask = || {
        send_stateless(&server, "tools/call", call.clone(), &all_capabilities())["result"].take()
    };
    (0..50).for_each(|_| drop(ask()));
    // Memory that a call holds grows in every round; a pool or the allocator grows once.
    let mut asked: Vec<Value> = Vec::new();
    let grown: Vec<u64> = (0..3)
        .map(|_| {
            let before = resident(server.pid());
            asked.extend((0..WAITING).map(|_| ask()));
            (resident(server.pid()).saturating_sub(before) << 10) / WAITING as u64
        })
        .collect();
    assert!(
        grown.iter().any(|each| *each < 256),
        "{grown:?} bytes for each waiting call"
    );
    for result in asked.iter().rev().take(10) {
        let params = retry_params(&call, result, &mut |key, _| accept_answer(key));
        assert_eq!(
            step_outputs(
                &send_stateless(&server, "tools/call", params, &all_capabilities())["result"]
            ),
            [accept_answer("who").to_string()]
        );
    }
}
