//! An MCP server of its own for WASI 0.3, on standard input and output, in a revision with
//! sessions.

#![allow(
    clippy::indexing_slicing,
    reason = "a member that a JSON value does not have is null"
)]

#[allow(
    unsafe_code,
    missing_docs,
    clippy::all,
    clippy::pedantic,
    clippy::allow_attributes_without_reason,
    reason = "generated code"
)]
mod bindings {
    wit_bindgen::generate!({ path: "../wasi3/wit", world: "command", generate_all });
    export!(Talker with_types_in self);
    pub(crate) struct Talker;
}

use bindings::exports::wasi::cli::run::Guest;
use bindings::wasi::cli::{stdin, stdout};
use bindings::{Talker, wit_stream};
use serde_json::{Value, json};
use wit_bindgen::{StreamReader, StreamResult};

impl Guest for Talker {
    async fn run() -> Result<(), ()> {
        let (mut writer, reader) = wit_stream::new();
        let written = stdout::write_via_stream(reader);
        let (mut stream, _ended) = stdin::read_via_stream();
        let mut rest = Vec::new();
        while let Some(line) = line(&mut stream, &mut rest).await {
            let Ok(message) = serde_json::from_slice::<Value>(&line) else {
                continue;
            };
            let (id, params) = (&message["id"], &message["params"]);
            let result = match message["method"].as_str().unwrap_or_default() {
                "initialize" => json!({
                    "protocolVersion": params["protocolVersion"],
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "talker", "version": "1.0.0"},
                }),
                "tools/list" => {
                    let tool =
                        |name: &str| json!({"name": name, "inputSchema": {"type": "object"}});
                    let tools = ["shout", "silent", "flood"].map(tool);
                    json!({"tools": tools})
                }
                "tools/call" => match params["name"].as_str().unwrap_or_default() {
                    "shout" => {
                        let text = params["arguments"]["text"]
                            .as_str()
                            .unwrap_or_default()
                            .to_uppercase();
                        json!({"content": [{"type": "text", "text": text}]})
                    }
                    "flood" => loop {
                        writer.write_all(vec![b'x'; 1 << 16]).await;
                    },
                    _ => continue,
                },
                _ => continue,
            };
            let said = format!(
                "{}\n",
                json!({"jsonrpc": "2.0", "id": id, "result": result})
            );
            if !writer.write_all(said.into_bytes()).await.is_empty() {
                return Err(());
            }
        }
        drop(writer);
        written.await.map_err(drop)
    }
}

/// The next line. `rest` is what was read beyond it.
async fn line(stream: &mut StreamReader<u8>, rest: &mut Vec<u8>) -> Option<Vec<u8>> {
    loop {
        if let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            return Some(rest.drain(..=end).collect());
        }
        let (result, piece) = stream.read(Vec::with_capacity(4096)).await;
        rest.extend(piece);
        if !matches!(result, StreamResult::Complete(_)) {
            return None;
        }
    }
}
