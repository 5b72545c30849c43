//! A client that waits for each response.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines, duplex};
use tokio::time::timeout;
use toolbay_mcp::process_stdio::{StdinStream, StdoutStream};

/// Size of the stream buffers, in bytes.
const BUFFER: usize = 64 << 10;

/// Maximum time to wait for a response. No request here runs a guest.
const ANSWER: Duration = Duration::from_secs(9);

/// One end of a session over a pair of streams.
pub(crate) struct Peer {
    answers: Lines<BufReader<DuplexStream>>,
    writer: DuplexStream,
    asked: u64,
}

impl Peer {
    /// Creates a client, and the streams for the server that serves it.
    pub(crate) fn connected() -> (Self, StdinStream, StdoutStream) {
        let (writer, reader) = duplex(BUFFER);
        let (server, answers) = duplex(BUFFER);
        let peer = Self {
            answers: BufReader::new(answers).lines(),
            writer,
            asked: 0,
        };
        (peer, Box::pin(reader), Box::pin(server))
    }

    /// Starts a session; returns the result of `initialize`.
    pub(crate) async fn initialize(&mut self) -> Value {
        let client = json!({"name": "peer", "version": "1"});
        let params =
            json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client});
        result(self.ask("initialize", &params).await)
    }

    /// Requests a page of the tools. Returns their names and the cursor of the next page.
    pub(crate) async fn list(&mut self, cursor: Option<&str>) -> (Vec<String>, Option<String>) {
        let params = cursor.map_or_else(|| json!({}), |cursor| json!({"cursor": cursor}));
        let page = result(self.ask("tools/list", &params).await);
        let Some(tools) = page.get("tools").and_then(Value::as_array) else {
            unreachable!("no tools: {page}")
        };
        let name = |tool: &Value| tool.get("name").and_then(Value::as_str).map(str::to_owned);
        let names = tools
            .iter()
            .map(|tool| name(tool).unwrap_or_else(|| unreachable!("no name: {tool}")));
        (
            names.collect(),
            page.get("nextCursor")
                .and_then(Value::as_str)
                .map(str::to_owned),
        )
    }

    /// Sends a request and waits for its response. Skips notifications.
    pub(crate) async fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.asked += 1;
        let id = self.asked;
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        if let Err(error) = self
            .writer
            .write_all(format!("{request}\n").as_bytes())
            .await
        {
            unreachable!("the server stopped reading: {error}");
        }
        loop {
            let Ok(Ok(Some(line))) = timeout(ANSWER, self.answers.next_line()).await else {
                unreachable!("no answer to {request}");
            };
            let answer: Value =
                serde_json::from_str(&line).unwrap_or_else(|error| unreachable!("{error}: {line}"));
            if answer.get("method").is_none() {
                assert_eq!(answer.get("id"), Some(&id.into()), "{answer}");
                return answer;
            }
        }
    }
}

/// Returns the result in this response, which must not be an error.
fn result(mut answer: Value) -> Value {
    match answer.get_mut("result") {
        Some(result) => result.take(),
        None => unreachable!("no result: {answer}"),
    }
}
