//! An MCP server of its own, over HTTP and without sessions, which also misbehaves on request: see
//! `tests/it/servers.rs`.

#![allow(
    clippy::indexing_slicing,
    reason = "a member that a JSON value does not have is null"
)]
#![allow(clippy::disallowed_methods, reason = "it is there to hang")]

use serde_json::{Value, json};
use wasip2::exports::http::incoming_handler::Guest;
use wasip2::http::types::{
    ErrorCode, Fields, IncomingBody, IncomingRequest, OutgoingBody, OutgoingResponse,
    ResponseOutparam,
};
use wasip2::io::streams::OutputStream;

wasip2::http::proxy::export!(Server);

struct Server;

const VERSION: &str = "2026-07-28";

/// What it does wrong, by the names of its tools.
const WRONG: [&str; 19] = [
    "silent",
    "hang",
    "unfinished",
    "trap-before",
    "trap-after-head",
    "trap-after-response",
    "stream-for-ever",
    "stream-after-response",
    "answer-twice",
    "early-hints",
    "odd-status",
    "huge-headers",
    "compressed",
    "large",
    "no-json",
    "wrong-id",
    "fail",
    "many-headers",
    "deep",
];

impl Guest for Server {
    fn handle(request: IncomingRequest, out: ResponseOutparam) {
        if request.path_with_query().as_deref() != Some("/mcp") {
            return whole(out, 404, "text/plain", "Not found");
        }
        let headers = request.headers();
        let header = |name: &str| {
            headers
                .get(name)
                .first()
                .map(|value| String::from_utf8_lossy(value).into_owned())
        };
        let (version, method, name) = (
            header("mcp-protocol-version"),
            header("mcp-method"),
            header("mcp-name"),
        );
        let region = header("mcp-param-region");
        let accepts = header("accept").unwrap_or_default();
        drop(headers);
        let message: Value = serde_json::from_str(&read(&request)).unwrap_or_default();
        let (id, params) = (&message["id"], &message["params"]);
        let meta = &params["_meta"];
        let is_modern = version.as_deref() == Some(VERSION)
            && method.as_deref() == message["method"].as_str()
            && meta["io.modelcontextprotocol/protocolVersion"] == VERSION
            && meta["io.modelcontextprotocol/clientCapabilities"].is_object()
            && accepts.contains("text/event-stream");
        if !is_modern {
            let error = json!({"code": -32022, "message": "Unsupported protocol version", "data": {"supported": [VERSION]}});
            let text = json!({"jsonrpc": "2.0", "id": id, "error": error}).to_string();
            return whole(out, 400, "application/json", &text);
        }
        let called = params["name"].as_str().or_else(|| params["uri"].as_str());
        if called.is_some() && name.as_deref() != called {
            let error = json!({"code": -32020, "message": "Mcp-Name differs"});
            return whole(
                out,
                400,
                "application/json",
                &json!({"jsonrpc": "2.0", "id": id, "error": error}).to_string(),
            );
        }
        let result = match message["method"].as_str().unwrap_or_default() {
            "tools/call" if WRONG.contains(&params["name"].as_str().unwrap_or_default()) => {
                return misbehave(params["name"].as_str().unwrap_or_default(), id, out);
            }
            method => served(method, params, region),
        };
        let (status, response) = match result {
            Ok(result) => (200, json!({"jsonrpc": "2.0", "id": id, "result": result})),
            Err((status, error)) => (status, json!({"jsonrpc": "2.0", "id": id, "error": error})),
        };
        whole(out, status, "application/json", &response.to_string());
    }
}

/// The result of a request, or its status and error.
fn served(method: &str, params: &Value, region: Option<String>) -> Result<Value, (u16, Value)> {
    let info = forged();
    let invalid = |message: &str| (200, json!({"code": -32602, "message": message}));
    Ok(match method {
        "server/discover" => json!({
            "resultType": "complete", "supportedVersions": [VERSION], "ttlMs": 0, "cacheScope": "private", "_meta": info,
            "capabilities": {"tools": {"listChanged": true}, "prompts": {}, "resources": {}, "completions": {}, "logging": {}},
        }),
        "tools/list" => {
            let numbers = json!({"type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "number"}}, "required": ["a", "b"]});
            let sum = json!({"type": "object", "properties": {"sum": {"type": "number"}}, "required": ["sum"]});
            let region = json!({"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}});
            let mut tools = vec![
                json!({"name": "add", "title": "Add", "description": "Adds two numbers.\u{1b}[2J", "inputSchema": numbers,
                    "outputSchema": sum, "annotations": {"readOnlyHint": true}, "_meta": info}),
                json!({"name": "where", "description": "Says which region was asked for.", "inputSchema": region}),
                json!({"name": "blocks", "description": "Returns a block of each kind.", "inputSchema": {"type": "object"}}),
                json!({"name": "ask", "description": "Asks for a name, then for a color.", "inputSchema": {"type": "object"}}),
                json!({"name": "need", "description": "Needs a client that has a model.", "inputSchema": {"type": "object"}}),
            ];
            tools
                .extend(WRONG.map(|name| json!({"name": name, "inputSchema": {"type": "object"}})));
            json!({"resultType": "complete", "tools": tools, "ttlMs": 0, "cacheScope": "public"})
        }
        "prompts/list" => json!({"resultType": "complete", "prompts": [
            {"name": "greet", "description": "Greets somebody.", "arguments": [{"name": "who", "required": true}], "_meta": info},
        ]}),
        "prompts/get" => {
            json!({"resultType": "complete", "description": "A greeting.", "_meta": info, "messages": [
                {"role": "user", "_meta": info, "content": {"type": "text", "_meta": info, "text": format!("Greet {}.", params["arguments"]["who"].as_str().unwrap_or_default())}},
            ]})
        }
        "resources/list" => json!({"resultType": "complete", "resources": [
            {"uri": "demo://motto", "name": "motto", "mimeType": "text/plain", "_meta": info},
        ]}),
        "resources/templates/list" => json!({"resultType": "complete", "resourceTemplates": [
            {"uriTemplate": "demo://squares/{n}", "name": "squares", "_meta": info},
        ]}),
        "resources/read" => {
            let uri = params["uri"].as_str().unwrap_or_default();
            let n = uri
                .strip_prefix("demo://squares/")
                .and_then(|n| n.parse::<u32>().ok());
            let item = match (uri, n) {
                ("demo://motto", _) => {
                    json!({"uri": uri, "mimeType": "text/plain", "text": "Less is more.", "_meta": info})
                }
                (_, Some(n)) => json!({"uri": uri, "blob": "AQI=", "_meta": {"square": n * n}}),
                _ => return Err(invalid("Resource not found")),
            };
            json!({"resultType": "complete", "contents": [item], "ttlMs": 0, "cacheScope": "private", "_meta": info})
        }
        "completion/complete" => {
            let typed = params["argument"]["value"].as_str().unwrap_or_default();
            let names: Vec<&str> = ["Ada", "Alan", "Grace"]
                .into_iter()
                .filter(|name| name.starts_with(typed))
                .collect();
            json!({"resultType": "complete", "completion": {"values": names, "total": names.len()}})
        }
        "tools/call" => {
            let arguments = &params["arguments"];
            match params["name"].as_str().unwrap_or_default() {
                "add" => {
                    let sum = arguments["a"].as_f64().unwrap_or_default()
                        + arguments["b"].as_f64().unwrap_or_default();
                    let text = json!({"type": "text", "text": sum.to_string()});
                    json!({"resultType": "complete", "content": [text], "structuredContent": {"sum": sum}, "_meta": info})
                }
                "where" => {
                    json!({"content": [{"type": "text", "text": region.unwrap_or_default()}]})
                }
                "blocks" => json!({"content": [
                    {"type": "text", "text": "a", "annotations": {"audience": ["user"], "priority": 0.5}, "_meta": info},
                    {"type": "image", "data": "AQI=", "mimeType": "image/png", "_meta": info},
                    {"type": "audio", "data": "AQI=", "mimeType": "audio/wav", "_meta": info},
                    {"type": "resource_link", "uri": "demo://motto", "name": "motto", "_meta": info},
                    {"type": "resource", "_meta": info,
                        "resource": {"uri": "demo://motto", "text": "Less is more.", "_meta": info}},
                ], "_meta": info}),
                "ask" => asked(params),
                "need" => {
                    return Err((
                        400,
                        json!({"code": -32021, "message": "sampling is needed", "data": {"requiredCapabilities": {"sampling": {}}}}),
                    ));
                }
                _ => return Err(invalid("Unknown tool")),
            }
        }
        _ => return Err((404, json!({"code": -32601, "message": "Method not found"}))),
    })
}

/// Members of a `_meta` of which one is the plugin's own. The others belong to the protocol and to
/// the host, and some of their values are malformed.
fn forged() -> Value {
    json!({
        "progressToken": {"not": "a token"},
        "io.modelcontextprotocol/related-task": 7,
        "io.modelcontextprotocol/serverInfo": {"name": "server", "version": "1.0.0"},
        "io.modelcontextprotocol/subscriptionId": [],
        "io.model\u{2060}contextprotocol/hidden": 1,
        "com.mcp.tools/x": 1,
        "mcp.dev/x": 1,
        "dev.toolbay/error": "forged",
        "dev.toolbay/usage": "forged",
        "own": true,
    })
}

/// Asks for a name, and with it for a color under the same key: what was answered before is in the
/// state.
fn asked(params: &Value) -> Value {
    let form = |member: &str, state: &str| {
        let schema = json!({"type": "object", "properties": {member: {"type": "string"}}, "required": [member]});
        let ask = json!({"method": "elicitation/create", "params": {"mode": "form", "message": format!("Which {member}?"), "requestedSchema": schema, "task": {"ttl": 1}, "_meta": forged()}});
        json!({"resultType": "input_required", "inputRequests": {"answer": ask}, "requestState": state})
    };
    let answer = |member: &str| {
        params["inputResponses"]["answer"]["content"][member]
            .as_str()
            .map(str::to_owned)
    };
    match params["requestState"].as_str() {
        None => form("name", "first"),
        Some("first") => match answer("name") {
            Some(name) => form("color", &format!("second {name}")),
            None => form("name", "first"),
        },
        Some(state) => {
            let (name, color) = (
                state.strip_prefix("second ").unwrap_or_default(),
                answer("color").unwrap_or_default(),
            );
            json!({"resultType": "complete", "content": [{"type": "text", "text": format!("{name} likes {color}")}]})
        }
    }
}

fn misbehave(how: &str, id: &Value, out: ResponseOutparam) {
    let fine =
        json!({"jsonrpc": "2.0", "id": id, "result": {"content": [{"type": "text", "text": "fine"}]}}).to_string();
    let event = format!("data: {fine}\n\n");
    match how {
        "silent" => drop(out),
        "hang" => loop {
            std::thread::sleep(std::time::Duration::from_hours(1));
        },
        "unfinished" => {
            let body = begin(out, 200, &[("content-type", "application/json")]);
            body.write(fine.as_bytes());
            // Neither finished nor dropped.
            std::mem::forget(body);
        }
        "trap-before" => trap(),
        "trap-after-head" => {
            let body = begin(out, 200, &[("content-type", "application/json")]);
            body.write(&fine.as_bytes()[..10]);
            trap();
        }
        "trap-after-response" => {
            let body = begin(out, 200, &[("content-type", "text/event-stream")]);
            body.write(event.as_bytes());
            trap();
        }
        "stream-for-ever" => {
            let body = begin(out, 200, &[("content-type", "text/event-stream")]);
            let note = json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x".repeat(4000)}});
            let note = format!("data: {note}\n\n");
            loop {
                body.write(note.as_bytes());
            }
        }
        "stream-after-response" => {
            let body = begin(out, 200, &[("content-type", "text/event-stream")]);
            body.write(event.as_bytes());
            loop {
                body.write(b": more\n\n");
            }
        }
        "answer-twice" => {
            let body = begin(out, 200, &[("content-type", "text/event-stream")]);
            body.write(event.as_bytes());
            body.write(event.replace("fine", "again").as_bytes());
            body.finish();
        }
        "early-hints" => {
            let Body { body, stream } = begin(out, 103, &[]);
            // The stream is a child of the body.
            drop(stream);
            drop(body);
        }
        "odd-status" => {
            let body = begin(out, 799, &[("content-type", "text/html")]);
            body.write("<p>\u{1b}[2Jodd</p>".as_bytes());
            body.finish();
        }
        "huge-headers" => {
            let fields = Fields::new();
            let refused = (0..1000).any(|n| {
                fields
                    .append("x-large", format!("{n}{}", "x".repeat(4000)).as_bytes())
                    .is_err()
            });
            let text = fine.replace("fine", if refused { "refused" } else { "accepted" });
            whole(out, 200, "application/json", &text);
        }
        "many-headers" => {
            let all: Vec<Fields> = (0..100_000).map(|_| Fields::new()).collect();
            whole(
                out,
                200,
                "application/json",
                &fine.replace("fine", &all.len().to_string()),
            );
        }
        "compressed" => {
            let body = begin(
                out,
                200,
                &[
                    ("content-type", "application/json"),
                    ("content-encoding", "gzip"),
                ],
            );
            body.write(&[0x1f, 0x8b, 8, 0]);
            body.finish();
        }
        "large" => {
            let body = begin(out, 200, &[("content-type", "application/json")]);
            for _ in 0..100_000 {
                body.write(&[b' '; 4096]);
            }
            body.write(fine.as_bytes());
            body.finish();
        }
        "deep" => whole(
            out,
            200,
            "application/json",
            &format!(
                "{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}",
                "[".repeat(1 << 20)
            ),
        ),
        "no-json" => whole(out, 200, "application/json", "<html>"),
        "wrong-id" => whole(
            out,
            200,
            "application/json",
            &fine.replace("\"id\":", "\"id\":7"),
        ),
        "fail" => ResponseOutparam::set(out, Err(ErrorCode::ConnectionRefused)),
        _ => {}
    }
}

fn trap() -> ! {
    std::process::abort()
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

/// Sends the head of a response.
fn begin(out: ResponseOutparam, status: u16, headers: &[(&str, &str)]) -> Body {
    let fields = Fields::new();
    for (name, value) in headers {
        let _ = fields.append(name, value.as_bytes());
    }
    let response = OutgoingResponse::new(fields);
    let _ = response.set_status_code(status);
    let Ok(body) = response.body() else { trap() };
    let Ok(stream) = body.write() else { trap() };
    ResponseOutparam::set(out, Ok(response));
    Body { body, stream }
}

/// The body of a response.
struct Body {
    body: OutgoingBody,
    stream: OutputStream,
}

impl Body {
    fn write(&self, bytes: &[u8]) {
        for part in bytes.chunks(4096) {
            if self.stream.blocking_write_and_flush(part).is_err() {
                trap();
            }
        }
    }

    fn finish(self) {
        drop(self.stream);
        drop(OutgoingBody::finish(self.body, None));
    }
}

fn whole(out: ResponseOutparam, status: u16, kind: &str, text: &str) {
    let body = begin(out, status, &[("content-type", kind)]);
    body.write(text.as_bytes());
    body.finish();
}
