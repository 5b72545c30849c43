//! Hostile clients, one for each kind. They ignore how their connections end.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use clap::ValueEnum;
use rustix::process::setpriority_process;
use serde_json::{Value, json};
use toolbay_testkit::{ClientSocket, ConnectionEnd, ObservableValue, message, revision};

use super::honest::{post, stateless};

const ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// Maximum time that it waits for the server before the next action.
const PATIENCE: Duration = Duration::from_millis(250);

/// The nice value of the lowest priority.
const LEAST: i32 = 19;

/// Maximum number of open connections. A further one replaces the oldest.
const KEPT: usize = 600;

/// Number of URIs in one request.
pub(super) const URIS: usize = 256;

/// Number of concurrent calls.
const CALLS: usize = 16;

/// What a client does again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    /// Sends requests and reads no response
    Deaf,
    /// Sends bodies without their last byte
    Halves,
    /// Sends `initialize` with 4 MB
    Initialize,
    /// Opens sessions
    Sessions,
    /// Opens connections
    Connections,
    /// Opens streams
    Streams,
    /// Sends arguments that take long to check
    Checks,
    /// Calls a tool that does not exist, to fill the audit log
    Rejected,
    /// Calls a tool that a person must allow, and lets nobody answer
    Approvals,
    /// Begins to log in to the console
    Logins,
    /// Calls a tool of the honest clients' plugin that never ends
    Places,
    /// Subscribes to URIs that many templates have to be compared with
    Templates,
    /// Subscribes to all resources that there are
    Subscriptions,
}

impl Kind {
    /// Returns a description that follows "a client that".
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Deaf => "reads no response",
            Self::Halves => "sends 3 MiB without the last byte",
            Self::Initialize => "sends initialize with 4 MB",
            Self::Sessions => "opens sessions",
            Self::Connections => "opens connections",
            Self::Streams => "opens streams",
            Self::Checks => "sends arguments that take long to check",
            Self::Rejected => "has calls rejected, beside an audit log",
            Self::Approvals => "leaves approvals open",
            Self::Logins => "begins logins of the console",
            Self::Places => "calls a tool of the same plugin that never ends",
            Self::Templates => "names 256 URIs that take long to compare with templates",
            Self::Subscriptions => "opens subscriptions to 256 resources",
        }
    }

    /// Repeats its action until the signal. Returns the number of repetitions.
    pub(super) fn go_on(self, server: SocketAddr, over: &ObservableValue<bool>) -> u64 {
        // On Linux, this sets the priority of the calling thread. A real client runs on a different
        // machine, so its computation must not take CPU time from the server and the honest
        // clients.
        let _ = setpriority_process(None, LEAST);
        let text = self.text().into_bytes();
        let mut kept = VecDeque::new();
        let mut times = 0;
        while !over.read(|over| *over) {
            // The result is ignored, because each repetition is independent.
            drop(self.once(server, &text, &mut kept));
            times += 1;
        }
        times
    }

    fn once(
        self,
        server: SocketAddr,
        text: &[u8],
        kept: &mut VecDeque<ClientSocket>,
    ) -> Result<(), ConnectionEnd> {
        let connect = || ClientSocket::connect(server, ADDRESS, PATIENCE);
        match self {
            Self::Deaf => {
                let mut socket = connect()?;
                // The loop ends when the server stops reading, because its responses are not read.
                while socket.send(text).is_ok() {}
                keep(kept, socket);
            }
            Self::Halves | Self::Streams | Self::Logins | Self::Subscriptions => {
                let mut socket = connect()?;
                socket.send(text)?;
                keep(kept, socket);
            }
            Self::Connections => keep(kept, connect()?),
            Self::Initialize | Self::Sessions | Self::Rejected => {
                let mut socket = match kept.pop_front() {
                    Some(socket) => socket,
                    None => connect()?,
                };
                socket.send(text)?;
                socket.wait_for_reply(false)?;
                kept.push_back(socket);
            }
            Self::Approvals => {
                let mut socket = connect()?;
                let hello = message::request(1, "initialize", &asking()).to_string();
                socket.send(post("", &hello).as_bytes())?;
                let session = socket
                    .wait_for_reply(false)?
                    .header("mcp-session-id")
                    .unwrap_or_default()
                    .to_owned();
                let call = message::request(
                    2,
                    "tools/call",
                    &json!({"name": "guarded", "arguments": {}}),
                )
                .to_string();
                socket.send(post(&format!("Mcp-Session-Id: {session}\r\n"), &call).as_bytes())?;
                keep(kept, socket);
            }
            Self::Checks | Self::Places | Self::Templates => {
                while kept.len() < CALLS {
                    let mut socket = connect()?;
                    socket.send(text)?;
                    kept.push_back(socket);
                }
                // After each response, the next request is sent.
                if let Some(mut socket) = kept.pop_front() {
                    socket.wait_for_reply(false)?;
                    socket.send(text)?;
                    kept.push_back(socket);
                }
            }
        }
        Ok(())
    }

    /// Returns the bytes that it sends each time.
    fn text(self) -> String {
        match self {
            Self::Connections | Self::Approvals => String::new(),
            Self::Rejected => request("tools/call", json!({"name": "nothing", "arguments": {}})),
            Self::Logins => "POST /console/login HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost\r\n\
                             Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 50\r\n\r\ntoken="
                .to_owned(),
            Self::Places => request("tools/call", json!({"name": "endless", "arguments": {"end": "never"}})),
            Self::Templates => listen(|number| format!("expensive:{}yQ{number:03}", "x".repeat(1900))),
            Self::Subscriptions => listen(|number| format!("plain:{number}")),
            Self::Deaf => request("tools/list", json!({})),
            Self::Halves => {
                let mut text = request("tools/list", json!({"x": "x".repeat(3 << 20)}));
                text.pop();
                text
            }
            Self::Initialize => {
                let mut hello = message::initialize_params(revision::NEWEST_SESSION_REVISION);
                let members: serde_json::Map<String, Value> =
                    (0..300_000).map(|n| (n.to_string(), json!({}))).collect();
                if let Some(hello) = hello.as_object_mut() {
                    hello.insert("capabilities".to_owned(), members.into());
                }
                post("", &message::request(1, "initialize", &hello).to_string())
            }
            Self::Sessions => post(
                "",
                &message::request(1, "initialize", &message::initialize_params(revision::NEWEST_SESSION_REVISION))
                    .to_string(),
            ),
            Self::Streams => request("subscriptions/listen", json!({"notifications": {"toolsListChanged": true}})),
            Self::Checks => {
                let lists: Vec<Value> = (0..60_000).map(|_| json!([[]])).collect();
                let arguments = json!({"text": format!("{}!", "ab".repeat(400_000)), "list": lists});
                request("tools/call", json!({"name": "strict", "arguments": arguments}))
            }
        }
    }
}

/// Returns a subscription to the maximum number of resources in one request.
fn listen(uri: impl Fn(usize) -> String) -> String {
    let uris: Vec<String> = (0..URIS).map(uri).collect();
    request(
        "subscriptions/listen",
        json!({"notifications": {"resourceSubscriptions": uris}}),
    )
}

/// Returns the `initialize` parameters of a client that supports elicitation.
fn asking() -> Value {
    let mut hello = message::initialize_params(revision::NEWEST_SESSION_REVISION);
    if let Some(hello) = hello.as_object_mut() {
        hello.insert("capabilities".to_owned(), json!({"elicitation": {}}));
    }
    hello
}

/// Returns a request without a session.
fn request(method: &str, params: Value) -> String {
    let name = params
        .get("name")
        .and_then(Value::as_str)
        .map(|name| format!("Mcp-Name: {name}\r\n"));
    let headers = format!(
        "Mcp-Method: {method}\r\n{}{}",
        stateless(),
        name.unwrap_or_default()
    );
    post(
        &headers,
        &message::stateless_request(revision::FIRST_STATELESS_REVISION, 1, method, params)
            .to_string(),
    )
}

fn keep(kept: &mut VecDeque<ClientSocket>, socket: ClientSocket) {
    kept.push_back(socket);
    if kept.len() > KEPT {
        kept.pop_front();
    }
}
