//! An MCP server of its own for WASI 0.3, over HTTP and without sessions, which also misbehaves on
//! request.

#![allow(clippy::unwrap_used, reason = "what it does is what a test expects")]
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
    wit_bindgen::generate!({ path: "../wasi3/wit", world: "server", generate_all });
    export!(Server with_types_in self);
    pub(crate) struct Server;
}

use bindings::exports::wasi::http::handler::Guest;
use bindings::wasi::clocks::monotonic_clock;
use bindings::wasi::http::client;
use bindings::wasi::http::types::{ErrorCode, Fields, Request, Response, Scheme};
use bindings::{Server, wit_future, wit_stream};
use serde_json::{Value, json};
use wit_bindgen::{StreamReader, StreamWriter, spawn_local};

const VERSION: &str = "2026-07-28";

const HOUR: u64 = 3_600_000_000_000;

/// What it does wrong, by the names of its tools.
const WRONG: [&str; 9] = [
    "fail",
    "hang",
    "unfinished",
    "trap",
    "trap-after-head",
    "break-a-rule",
    "stream-for-ever",
    "large",
    "elsewhere",
];

/// What the component model has for code that waits, without the checks of the bindings.
#[allow(unsafe_code, reason = "it is wrong on purpose")]
mod unchecked {
    #[link(wasm_import_module = "$root")]
    unsafe extern "C" {
        #[link_name = "[waitable-set-drop]"]
        fn waitable_set_drop(set: u32);
    }

    /// Drops a set that does not exist.
    pub(crate) fn drop_no_set() {
        // SAFETY: it takes a number, and the host checks it.
        unsafe { waitable_set_drop(1 << 20) }
    }
}

impl Guest for Server {
    async fn handle(request: Request) -> Result<Response, ErrorCode> {
        if request.get_path_with_query().as_deref() != Some("/mcp") {
            return Ok(whole(404, "Not found".to_owned()));
        }
        let version = request.get_headers().get("mcp-protocol-version");
        let (_, verdict) = wit_future::new(|| Ok(()));
        let (stream, _ended) = Request::consume_body(request, verdict);
        let message: Value = serde_json::from_slice(&stream.collect().await).unwrap_or_default();
        let (id, params) = (&message["id"], &message["params"]);
        if version.first().map(Vec::as_slice) != Some(VERSION.as_bytes()) {
            let error =
                json!({"code": -32022, "message": "Unsupported", "data": {"supported": [VERSION]}});
            return Ok(whole(
                400,
                json!({"jsonrpc": "2.0", "id": id, "error": error}).to_string(),
            ));
        }
        let result = match message["method"].as_str().unwrap_or_default() {
            "server/discover" => json!({
                "resultType": "complete", "supportedVersions": [VERSION], "ttlMs": 0, "cacheScope": "private",
                "capabilities": {"tools": {}},
            }),
            "tools/list" => {
                let tool = |name: &str| json!({"name": name, "inputSchema": {"type": "object"}});
                let tools: Vec<Value> = std::iter::once("add").chain(WRONG).map(tool).collect();
                json!({"resultType": "complete", "tools": tools, "ttlMs": 0, "cacheScope": "public"})
            }
            "tools/call" => match params["name"].as_str().unwrap_or_default() {
                "add" => {
                    let [a, b] = ["a", "b"]
                        .map(|name| params["arguments"][name].as_f64().unwrap_or_default());
                    json!({"resultType": "complete", "content": [{"type": "text", "text": (a + b).to_string()}]})
                }
                name => return misbehave(name, id).await,
            },
            _ => return Ok(whole(404, String::new())),
        };
        Ok(whole(
            200,
            json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string(),
        ))
    }
}

/// A response with a body that is written while it is read.
fn whole(status: u16, text: String) -> Response {
    let (mut writer, reader) = wit_stream::new();
    spawn_local(async move {
        writer.write_all(text.into_bytes()).await;
    });
    begin(status, reader)
}

fn begin(status: u16, body: StreamReader<u8>) -> Response {
    let fields = Fields::new();
    fields.append("content-type", b"application/json").unwrap();
    let (_, end) = wit_future::new(|| Ok(None));
    let (response, _sent) = Response::new(fields, Some(body), end);
    response.set_status_code(status).unwrap();
    response
}

async fn misbehave(how: &str, id: &Value) -> Result<Response, ErrorCode> {
    let fine =
        json!({"jsonrpc": "2.0", "id": id, "result": {"content": [{"type": "text", "text": "fine"}]}}).to_string();
    let (writer, reader) = wit_stream::new();
    match how {
        "fail" => return Err(ErrorCode::ConnectionRefused),
        "hang" => monotonic_clock::wait_for(HOUR).await,
        "trap" => std::process::abort(),
        "break-a-rule" => unchecked::drop_no_set(),
        // Neither finished nor dropped.
        "unfinished" => spawn_local(write(writer, fine, false)),
        "trap-after-head" => spawn_local(async {
            write(writer, "{".to_owned(), true).await;
            std::process::abort();
        }),
        "stream-for-ever" => spawn_local(async move {
            let mut writer = writer;
            while writer.write_all(vec![b' '; 4096]).await.is_empty() {}
        }),
        "large" => spawn_local(write(writer, " ".repeat(64 << 20), true)),
        // The body of another server's response.
        "elsewhere" => {
            let (_, end) = wit_future::new(|| Ok(None));
            let (request, _sent) = Request::new(Fields::new(), None, end, None);
            request.set_scheme(Some(&Scheme::Http)).unwrap();
            request.set_authority(Some("a.example")).unwrap();
            request.set_path_with_query(Some("/")).unwrap();
            let response = client::send(request).await?;
            let (_, verdict) = wit_future::new(|| Ok(()));
            let (stream, _ended) = Response::consume_body(response, verdict);
            return Ok(begin(200, stream));
        }
        _ => return Ok(whole(404, String::new())),
    }
    Ok(begin(200, reader))
}

async fn write(mut writer: StreamWriter<u8>, text: String, ends: bool) {
    writer.write_all(text.into_bytes()).await;
    if !ends {
        std::mem::forget(writer);
    }
}
