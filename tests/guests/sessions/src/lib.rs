//! An MCP server of its own, over HTTP, that wants a session: nothing works before the handshake,
//! and it answers with events.

#![allow(
    clippy::indexing_slicing,
    reason = "a member that a JSON value does not have is null"
)]

use std::cell::Cell;
use std::fmt::Write as _;
use std::io::Write as _;

use serde_json::{Value, json};
use wasip2::exports::http::incoming_handler::Guest;
use wasip2::http::types::{
    Fields, IncomingBody, IncomingRequest, OutgoingBody, OutgoingResponse, ResponseOutparam,
};

wasip2::http::proxy::export!(Sessions);

struct Sessions;

/// The name of the only session.
const SESSION: &str = "only-one";

thread_local! {
    /// How far the handshake is.
    static STEP: Cell<u8> = const { Cell::new(0) };
}

impl Guest for Sessions {
    fn handle(request: IncomingRequest, out: ResponseOutparam) {
        if request.path_with_query().as_deref() != Some("/") {
            return answer(out, 404, &[], "text/plain", "Not found");
        }
        let headers = request.headers();
        let session = headers.get("mcp-session-id").first().cloned();
        let version = headers.get("mcp-protocol-version").first().cloned();
        drop(headers);
        let message: Value = serde_json::from_str(&read(&request)).unwrap_or_default();
        let id = &message["id"];
        let method = message["method"].as_str().unwrap_or_default();
        if method == "initialize" {
            STEP.set(1);
            let result = json!({
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {}, "resources": {}, "completions": {}},
                "serverInfo": {"name": "sessions", "version": "1.0.0"},
            });
            let text = json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string();
            return answer(
                out,
                200,
                &[("mcp-session-id", SESSION)],
                "application/json",
                &text,
            );
        }
        if session.as_deref() != Some(SESSION.as_bytes()) {
            let error = json!({"code": -32000, "message": "Bad Request: Mcp-Session-Id header is required"});
            let text = json!({"jsonrpc": "2.0", "id": null, "error": error}).to_string();
            return answer(out, 400, &[], "application/json", &text);
        }
        if method == "notifications/initialized" && version.as_deref() == Some(b"2025-06-18") {
            STEP.set(2);
            return answer(out, 202, &[], "text/plain", "");
        }
        let body = match (STEP.get(), method) {
            (2, method) => called(method, &message["params"]),
            _ => Err((-32600, "the session has not begun".to_owned())),
        };
        let response = match body {
            Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
            Err((code, message)) => {
                json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
            }
        };
        let note = |n: u32| {
            let token = &message["params"]["_meta"]["progressToken"];
            let params = json!({"progressToken": token, "progress": n, "total": 2, "message": format!("step {n}")});
            json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})
        };
        let log = json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "warning", "data": "careful"}});
        let asks = json!({"jsonrpc": "2.0", "id": "mine", "method": "roots/list"});
        let mut events = String::from("id: 0\ndata:\n\n");
        if method == "tools/call" {
            for message in [note(1), log, asks, note(2)] {
                let _ = write!(events, "event: message\r\ndata: {message}\r\n\r\n");
            }
        }
        let _ = write!(events, "data: {response}\n\n");
        answer(out, 200, &[], "text/event-stream; charset=utf-8", &events);
    }
}

fn called(method: &str, params: &Value) -> Result<Value, (i32, String)> {
    match method {
        // Two pages.
        "tools/list" => {
            let tool = |name: &str| json!({"name": name, "description": "Counts letters.", "inputSchema": {"type": "object"}});
            match params["cursor"].as_str() {
                None => Ok(json!({"tools": [tool("count")], "nextCursor": "two"})),
                Some("two") => Ok(json!({"tools": [tool("fail")]})),
                Some(_) => Err((-32602, "no such page".to_owned())),
            }
        }
        "resources/list" => Ok(json!({"resources": []})),
        "resources/templates/list" => Ok(
            json!({"resourceTemplates": [{"uriTemplate": "letters://{word}", "name": "letters"}]}),
        ),
        "resources/read" => {
            let uri = params["uri"].as_str().unwrap_or_default();
            match uri.strip_prefix("letters://") {
                Some("none") | None => Err((-32002, "Resource not found".to_owned())),
                Some(word) => Ok(
                    json!({"contents": [{"uri": uri, "mimeType": "text/plain", "text": word.len().to_string()}]}),
                ),
            }
        }
        "completion/complete" => Ok(
            json!({"completion": {"values": [format!("{}!", params["argument"]["value"].as_str().unwrap_or_default())], "hasMore": true}}),
        ),
        "tools/call" if params["name"] == "count" => {
            let text = params["arguments"]["text"].as_str().unwrap_or_default();
            Ok(json!({"content": [{"type": "text", "text": text.chars().count().to_string()}]}))
        }
        "tools/call" => {
            Ok(json!({"content": [{"type": "text", "text": "it failed"}], "isError": true}))
        }
        _ => Err((-32601, "Method not found".to_owned())),
    }
}

fn read(request: &IncomingRequest) -> String {
    let mut bytes = Vec::new();
    if let Ok(body) = request.consume() {
        if let Ok(stream) = body.stream() {
            while let Ok(part) = stream.blocking_read(64 << 10) {
                bytes.extend(part);
            }
        }
        drop(IncomingBody::finish(body));
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn answer(out: ResponseOutparam, status: u16, headers: &[(&str, &str)], kind: &str, text: &str) {
    let fields = Fields::new();
    for (name, value) in headers.iter().chain(&[("content-type", kind)]) {
        let _ = fields.append(name, value.as_bytes());
    }
    let response = OutgoingResponse::new(fields);
    let _ = response.set_status_code(status);
    let Ok(body) = response.body() else { return };
    ResponseOutparam::set(out, Ok(response));
    if let Ok(mut stream) = body.write() {
        drop(stream.write_all(text.as_bytes()));
    }
    drop(OutgoingBody::finish(body, None));
}
