//! In-process client, for commands that show the responses that a client gets.

use std::io;

use serde_json::{Map, Value, json};
use tokio::io::{
    AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf,
    split,
};

use crate::protocol::capabilities::TASKS_EXTENSION;
use crate::protocol::jsonrpc::{self, RequestId};
use crate::protocol::message_context;
use crate::protocol::revision::Revision;

/// A client of the newest revision that supports tasks.
#[derive(Debug)]
pub struct LocalClient {
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    writer: WriteHalf<DuplexStream>,
    /// Id of the last request.
    last: u64,
}

/// A message from the server.
#[derive(Debug)]
pub enum LocalMessage {
    /// The result of a request.
    Result(Value),
    /// The message of a request's error.
    Error(String),
    /// A task status notification.
    Task(Value),
}

impl LocalClient {
    /// Creates a client at this end of a stream.
    pub fn new(stream: DuplexStream) -> Self {
        let (reader, writer) = split(stream);
        Self {
            lines: BufReader::new(reader).lines(),
            writer,
            last: 0,
        }
    }

    /// Sends a request.
    ///
    /// # Errors
    ///
    /// Returns an error if the server has ended.
    pub async fn send(&mut self, method: &str, mut params: Map<String, Value>) -> io::Result<()> {
        self.last += 1;
        params.insert(
            "_meta".to_owned(),
            message_context::request_meta(
                Revision::NEWEST,
                &json!({"extensions": {TASKS_EXTENSION: {}}}),
            ),
        );
        let mut line =
            jsonrpc::request(&RequestId::Number(self.last.into()), method, Some(&params));
        line.push(b'\n');
        self.writer.write_all(&line).await
    }

    /// Returns the next result, error or task notification, or `None` if the server has ended.
    /// Skips other messages.
    ///
    /// # Errors
    ///
    /// Returns an error if reading fails.
    pub async fn receive(&mut self) -> io::Result<Option<LocalMessage>> {
        while let Some(line) = self.lines.next_line().await? {
            let mut message: Map<String, Value> = serde_json::from_str(&line)?;
            if let Some(error) = message.get("error") {
                let words = error
                    .get("message")
                    .and_then(Value::as_str)
                    .unwrap_or_default();
                return Ok(Some(LocalMessage::Error(words.to_owned())));
            }
            if let Some(result) = message.remove("result") {
                return Ok(Some(LocalMessage::Result(result)));
            }
            if let (Some("notifications/tasks"), Some(task)) = (
                message
                    .get("method")
                    .and_then(Value::as_str)
                    .map(str::to_owned)
                    .as_deref(),
                message.remove("params"),
            ) {
                return Ok(Some(LocalMessage::Task(task)));
            }
        }
        Ok(None)
    }
}
