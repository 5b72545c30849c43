//! `toolbay call --task`: a call as a client makes it that takes tasks, with what becomes of the task on standard error.

use std::io;
use std::pin::pin;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use serde_json::{Map, Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf, split};
use tokio_util::sync::CancellationToken;

use super::output::{complain, note, print_json};
use super::result;
use crate::server::Server;

/// Bytes that can wait between the two ends.
const BUFFER: usize = 64 << 10;

/// The id of the subscription to the task.
const LISTENING: &str = "listen";

/// Calls the tool of this server, and prints its result.
pub(super) async fn run(
    server: &Server,
    tool: &str,
    arguments: Map<String, Value>,
    json: bool,
) -> anyhow::Result<ExitCode> {
    let (client, host) = tokio::io::duplex(BUFFER);
    let (reader, writer) = split(host);
    let stop = CancellationToken::new();
    let serving = server.serve_stdio(Box::pin(reader), Box::pin(writer), stop.clone());
    let called = async {
        let ended = Client::new(client).call(tool, arguments, json).await;
        stop.cancel();
        ended
    };
    let (finished, code) = tokio::join!(serving, called);
    finished.context("failed to serve the call")?;
    code
}

/// The other end.
struct Client {
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    writer: WriteHalf<DuplexStream>,
}

/// What came.
enum Message {
    Response(Value),
    Task(Value),
}

impl Client {
    fn new(stream: DuplexStream) -> Self {
        let (reader, writer) = split(stream);
        Self { lines: BufReader::new(reader).lines(), writer }
    }

    async fn call(&mut self, tool: &str, arguments: Map<String, Value>, json: bool) -> anyhow::Result<ExitCode> {
        self.send("call", "tools/call", json!({"name": tool, "arguments": arguments})).await?;
        let mut interrupted = pin!(tokio::signal::ctrl_c());
        let mut result = self.response().await?;
        if result.get("resultType").is_none_or(|kind| kind != "task") {
            note("the call ended before it became a task");
            return show(&result, json);
        }
        let id = result.get_mut("taskId").map(Value::take).unwrap_or_default();
        note(&format!("task {}: working", id.as_str().unwrap_or_default()));
        self.send(LISTENING, "subscriptions/listen", json!({"notifications": {"taskIds": [id]}})).await?;
        // It may have ended before that.
        self.send("get", "tasks/get", json!({"taskId": id})).await?;
        let mut said = String::new();
        loop {
            let message = tokio::select! {
                message = self.receive() => message?,
                _ = &mut interrupted => {
                    self.send("cancel", "tasks/cancel", json!({"taskId": id})).await?;
                    bail!("cancelled");
                }
            };
            let (Message::Response(mut task) | Message::Task(mut task)) = message;
            let status = task.get("status").and_then(Value::as_str).unwrap_or_default().to_owned();
            let words = task.get("statusMessage").and_then(Value::as_str).map(|words| format!(": {words}"));
            let now = format!("task: {status}{}", words.unwrap_or_default());
            if !status.is_empty() && now != said {
                note(&now);
                said = now;
            }
            match status.as_str() {
                "completed" => return show(&task.get_mut("result").map(Value::take).unwrap_or_default(), json),
                "failed" => bail!("{}", message_of(task.get("error"))),
                "cancelled" => bail!("the task was cancelled"),
                "input_required" => {
                    self.send("cancel", "tasks/cancel", json!({"taskId": id})).await?;
                    bail!("the tool asks its user something, which a client can answer: try it in one");
                }
                _ => {}
            }
        }
    }

    async fn send(&mut self, id: &str, method: &str, mut params: Value) -> io::Result<()> {
        if let Some(params) = params.as_object_mut() {
            let capabilities = json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
            let stated = json!({
                "io.modelcontextprotocol/protocolVersion": toolbay_mcp::Revision::NEWEST.as_str(),
                "io.modelcontextprotocol/clientCapabilities": capabilities,
            });
            params.insert("_meta".to_owned(), stated);
        }
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.writer.write_all(format!("{message}\n").as_bytes()).await
    }

    /// The next response.
    async fn response(&mut self) -> anyhow::Result<Value> {
        loop {
            if let Message::Response(result) = self.receive().await? {
                return Ok(result);
            }
        }
    }

    /// The next response, or the next that is told of the task.
    async fn receive(&mut self) -> anyhow::Result<Message> {
        loop {
            let line = self.lines.next_line().await?.context("the server ended")?;
            let mut message: Value = serde_json::from_str(&line)?;
            if let Some(error) = message.get("error") {
                bail!("{}", message_of(Some(error)));
            }
            if let Some(result) = message.get_mut("result") {
                return Ok(Message::Response(result.take()));
            }
            if message.get("method").is_some_and(|method| method == "notifications/tasks")
                && let Some(task) = message.get_mut("params")
            {
                return Ok(Message::Task(task.take()));
            }
        }
    }
}

fn message_of(error: Option<&Value>) -> &str {
    error.and_then(|error| error.get("message")).and_then(Value::as_str).unwrap_or("the call failed")
}

/// Prints a result.
fn show(result: &Value, json: bool) -> anyhow::Result<ExitCode> {
    let failed = result.get("isError").is_some_and(|failed| failed == true);
    if json {
        print_json(result)?;
    } else {
        result::show_text(result);
    }
    if failed {
        complain("the tool failed");
    }
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
