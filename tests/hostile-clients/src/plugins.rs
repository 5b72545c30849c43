//! The plugins of the servers, and small limits so that many clients run in a short time.

use std::fs;
use std::path::Path;

use anyhow::Result;
use serde_json::{Value, json};
use toolbay_testkit::{ServerProgram, TestFolder, TinyComponent, TinyTool, ToolbayCommand};

/// Budget for the bytes of all requests, in KiB.
pub(crate) const REQUESTS: u64 = 64 << 10;

/// The share of one HTTP caller in this budget, in KiB.
pub(crate) const OWN: u64 = REQUESTS / 4;

/// Buffered bytes of one caller's resumable streams, in KiB: a quarter of `http.resume_size`.
pub(crate) const RESUMABLE: u64 = (8 << 10) / 4;

/// Maximum number of connections of one address, including queued ones.
pub(crate) const CONNECTIONS: u64 = 48 + 32;

/// Approximate size of the list of tools, in KiB, which a connection may have buffered for sending.
pub(crate) const LIST: u64 = 200;

const CONFIG: &str = r#"
log = "warn,toolbay_mcp::transport=info"
[server]
calls = 16
calls_per_caller = 8
queue = 64
queue_timeout = "1s"
memory = "256MiB"
request_memory = "64MiB"
grace_period = "1s"
[limits]
memory = "16MiB"
timeout = "3s"
[rate_limit]
calls = 1_000_000
per = "1s"
[caller_rate_limit]
calls = 1_000_000
per = "1s"
[circuit_breaker]
crashes = 0
[http]
sse = true
connections = 64
connections_per_address = 48
requests_per_caller = 32
sessions = 40
sessions_per_caller = 16
sessions_per_address = 20
# More than an honest client may have to wait for an answer.
session_idle_timeout = "11s"
stream_keep_alive = "200ms"
idle_timeout = "1s"
write_timeout = "500ms"
resume_size = "8MiB"
"#;

/// A schema for which arguments are slow to check.
const STRICT: &str = r#"{"type": "object", "required": ["text"], "properties": {
    "text": {"type": "string", "pattern": "^(a+)+$", "maxLength": 2000000},
    "list": {"type": "array", "uniqueItems": true, "items": {"type": ["array", "integer"]}}},
    "patternProperties": {"^x(a|b)*y$": {"type": "integer"}}, "additionalProperties": false}"#;

/// A schema with an argument that is repeated in a header.
const HEADER: &str = r#"{"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}"#;

/// Returns calls, as tools and arguments, that fill the server's caches and pools: buffers for a
/// long message, and memory for checks.
pub(crate) fn large() -> [(&'static str, Value); 3] {
    let lists = vec![json!([[]]); 30_000];
    [
        ("bystander", json!({"x": "x".repeat(3 << 20)})),
        ("strict", json!({"text": format!("{}!", "ab".repeat(500_000)), "list": lists})),
        ("strict", json!({"text": "a".repeat(200_000), "list": [], "xabab": 1})),
    ]
}

/// Creates a folder for a server, with all plugins in it.
pub(crate) fn folder(server: &Path) -> Result<TestFolder> {
    let folder = TestFolder::create(&ServerProgram::new(server), "toolbay-hostile-clients-")?;
    let put = |name: &str, component: Vec<u8>| fs::write(folder.plugin_path(&format!("{name}.wasm")), component);
    let wide = TinyTool { description: Some("w".repeat(200 << 10)), ..TinyTool::new("bystander") };
    put("bystander", TinyComponent::with_tools(vec![wide]).with_text("here").build())?;
    put("echo", TinyComponent::new(&["echo"]).with_echo().build())?;
    put("spin", TinyComponent::new(&["spin"]).before_call("(loop (br 0))").build())?;
    fs::write(
        folder.plugin_path("spin.toml"),
        "[limits]\ntimeout = \"400ms\"\nfuel = 1_000_000_000_000\nconcurrency = 4\n",
    )?;
    put("crash", TinyComponent::new(&["crash"]).before_call("unreachable").build())?;
    put(
        "strict",
        TinyComponent::with_tools(vec![TinyTool { input: STRICT.to_owned(), ..TinyTool::new("strict") }]).build(),
    )?;
    put(
        "header",
        TinyComponent::with_tools(vec![TinyTool { input: HEADER.to_owned(), ..TinyTool::new("header") }]).build(),
    )?;
    fs::write(folder.sibling_path("toolbay.toml"), CONFIG)?;
    Ok(folder)
}

/// Returns a server for the folder.
pub(crate) fn serve(folder: &TestFolder, arguments: &[&str]) -> ToolbayCommand {
    // By default, the allocator retains freed memory. This limits how much.
    ToolbayCommand::new(folder).args(["serve"]).args(arguments).env("MALLOC_TRIM_THRESHOLD_", "65536")
}
