//! An MCP server of its own, on standard input and output, in a revision with sessions. It prints
//! more than messages, asks the host in the middle of a call, and misbehaves on request.

#![allow(
    clippy::indexing_slicing,
    reason = "a member that a JSON value does not have is null"
)]

use std::io::{BufRead as _, Write as _, stderr, stdin, stdout};

use serde_json::{Value, json};
use wasip2::exports::cli::run::Guest;

wasip2::cli::command::export!(Talker);

struct Talker;

impl Guest for Talker {
    fn run() -> Result<(), ()> {
        print("talker is ready");
        let mut lines = stdin().lock().lines();
        let mut began = false;
        while let Some(Ok(line)) = lines.next() {
            let Ok(message) = serde_json::from_str::<Value>(&line) else {
                continue;
            };
            let (id, params) = (&message["id"], &message["params"]);
            let result = match message["method"].as_str().unwrap_or_default() {
                "initialize" => json!({
                    "protocolVersion": params["protocolVersion"],
                    "capabilities": {"tools": {}, "prompts": {}},
                    "serverInfo": {"name": "talker", "version": "1.0.0"},
                }),
                "notifications/initialized" => {
                    began = true;
                    continue;
                }
                _ if !began => {
                    say(
                        &json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32600, "message": "not initialized"}}),
                    );
                    continue;
                }
                "tools/list" => {
                    let tool =
                        |name: &str| json!({"name": name, "inputSchema": {"type": "object"}});
                    let tools = ["shout", "silent", "flood", "exit"].map(tool);
                    json!({"tools": tools})
                }
                "prompts/list" => {
                    json!({"prompts": [{"name": "greet", "arguments": [{"name": "who", "required": true}]}]})
                }
                "prompts/get" => {
                    let text = format!(
                        "Greet {}.",
                        params["arguments"]["who"].as_str().unwrap_or_default()
                    );
                    json!({"messages": [{"role": "user", "content": {"type": "text", "text": text}}]})
                }
                "tools/call" => match params["name"].as_str().unwrap_or_default() {
                    "shout" => {
                        // The host answers both before the call goes on.
                        say(&json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}));
                        say(&json!({"jsonrpc": "2.0", "id": "r", "method": "roots/list"}));
                        let answers: Vec<Value> = (&mut lines)
                            .take(2)
                            .filter_map(|line| serde_json::from_str(&line.ok()?).ok())
                            .collect();
                        let text = params["arguments"]["text"]
                            .as_str()
                            .unwrap_or_default()
                            .to_uppercase();
                        let text = format!(
                            "{text} {} {}",
                            answers[0]["result"], answers[1]["error"]["code"]
                        );
                        json!({"content": [{"type": "text", "text": text}]})
                    }
                    "flood" => loop {
                        print(&"x".repeat(1 << 16));
                    },
                    "exit" => {
                        drop(writeln!(stderr(), "out of order"));
                        return Err(());
                    }
                    _ => continue,
                },
                _ => continue,
            };
            say(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
        }
        Ok(())
    }
}

fn say(message: &Value) {
    print(&message.to_string());
}

fn print(line: &str) {
    let mut stdout = stdout().lock();
    drop(writeln!(stdout, "{line}"));
    drop(stdout.flush());
}
