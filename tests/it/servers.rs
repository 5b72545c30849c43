//! Components that are MCP servers themselves, as plugins: over HTTP with and without sessions, and
//! over standard input and output.

use serde_json::{Value, json};

use crate::support::{
    Folder, HttpServer, MODERN, StdioServer, ToolbayCommand, own_server, result_text,
};

fn start_server(name: &str, first: &str) -> StdioServer {
    let folder = Folder::with(&format!("{name}.wasm"), own_server(name));
    let mut server = StdioServer::start(&folder);
    server.wait_for_tool(first);
    server
}

fn tool(server: &mut StdioServer, name: &str) -> Value {
    server
        .tools()
        .into_iter()
        .find(|tool| tool["name"] == name)
        .unwrap()
}

#[test]
fn an_http_handler_that_speaks_mcp_is_a_plugin() {
    let mut server = start_server("server", "add");
    let add = tool(&mut server, "add");
    assert_eq!(
        (
            &add["title"],
            &add["description"],
            &add["annotations"]["readOnlyHint"]
        ),
        (&json!("Add"), &json!("Adds two numbers."), &json!(true))
    );
    let sum = server.call("add", json!({"a": 1, "b": 2.5}));
    assert_eq!(sum["structuredContent"], json!({"sum": 3.5}));
    assert_eq!(result_text(&sum), "3.5");
    assert_eq!(sum["_meta"]["own"], true);
    assert!(
        !sum["_meta"].to_string().contains("1.0.0"),
        "the server's name is its own affair: {sum}"
    );
    let (kind, _) = server.failure("add", json!({"a": "one"}));
    assert_eq!(kind, "invalid-arguments");
    // The plugin derives the header from the argument, as a client would.
    assert_eq!(
        server.text("where", json!({"region": "Zürich"})),
        "=?base64?WsO8cmljaA==?="
    );
    assert_eq!(server.text("where", json!({"region": "eu"})), "eu");
    assert_eq!(server.text("where", json!({})), "");
}

#[test]
fn blocks_of_every_kind_pass_through() {
    let mut server = start_server("server", "blocks");
    let result = server.call("blocks", json!({}));
    let kinds: Vec<&str> = result["content"]
        .as_array()
        .unwrap()
        .iter()
        .map(|block| block["type"].as_str().unwrap())
        .collect();
    assert_eq!(
        kinds,
        ["text", "image", "audio", "resource_link", "resource"]
    );
    assert_eq!(
        result["content"][0]["annotations"],
        json!({"audience": ["user"], "priority": 0.5})
    );
    assert_eq!(result["content"][1]["data"], "AQI=");
    assert_eq!(result["content"][4]["resource"]["text"], "Less is more.");
}

#[test]
fn prompts_resources_and_completion_of_a_server_are_in_the_catalog() {
    let mut server = start_server("server", "add");
    let prompts = server.result("prompts/list", json!({}));
    assert_eq!(prompts["prompts"][0]["name"], "greet");
    let greeting = server.result(
        "prompts/get",
        json!({"name": "greet", "arguments": {"who": "Ada"}}),
    );
    assert_eq!(greeting["messages"][0]["content"]["text"], "Greet Ada.");
    let resources = server.result("resources/list", json!({}));
    let uri = resources["resources"][0]["uri"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!(
        server.result("resources/read", json!({"uri": uri}))["contents"][0]["text"],
        "Less is more."
    );
    let square = server.result("resources/read", json!({"uri": "demo://squares/7"}));
    assert_eq!(
        (
            &square["contents"][0]["blob"],
            &square["contents"][0]["_meta"]["square"]
        ),
        (&json!("AQI="), &json!(49))
    );
    assert_eq!(
        server.error("resources/read", json!({"uri": "demo://squares/x"}))["code"],
        -32002
    );
    let argument = json!({"name": "who", "value": "A"});
    let completed = server.result(
        "completion/complete",
        json!({"ref": {"type": "ref/prompt", "name": "greet"}, "argument": argument}),
    );
    assert_eq!(completed["completion"]["values"], json!(["Ada", "Alan"]));
}

#[test]
fn a_server_that_requires_a_session_is_initialized_in_each_call() {
    let mut server = start_server("sessions", "count");
    server.wait_until_listed(&["count", "fail"]);
    let id = server.start_call_with_progress("count", json!({"text": "héllo"}));
    assert_eq!(result_text(&server.wait_for_response(id)["result"]), "5");
    let messages: Vec<Value> = server.take_notifications("notifications/progress");
    let steps: Vec<&Value> = messages.iter().map(|message| &message["message"]).collect();
    assert_eq!(steps, ["step 1", "step 2"]);
    assert_eq!(
        server.failure("fail", json!({})),
        ("none".to_owned(), "it failed".to_owned())
    );
    let read = server.result("resources/read", json!({"uri": "letters://hello"}));
    assert_eq!(read["contents"][0]["text"], "5");
    assert_eq!(
        server.error("resources/read", json!({"uri": "letters://none"}))["code"],
        -32002
    );
    let argument = json!({"name": "word", "value": "hi"});
    let reference = json!({"type": "ref/resource", "uri": "letters://{word}"});
    let completed = server.result(
        "completion/complete",
        json!({"ref": reference, "argument": argument}),
    );
    assert_eq!(
        completed["completion"],
        json!({"values": ["hi!"], "hasMore": true})
    );
}

#[test]
fn a_command_that_speaks_mcp_is_a_server_and_not_a_tool() {
    let mut server = start_server("talker", "shout");
    server.wait_until_listed(&["exit", "flood", "shout", "silent"]);
    // During the call, the server sends two requests to the host: one is answered, and the other is
    // rejected.
    assert_eq!(
        server.text("shout", json!({"text": "hello"})),
        "HELLO {} -32601"
    );
    let greeting = server.result(
        "prompts/get",
        json!({"name": "greet", "arguments": {"who": "Ada"}}),
    );
    assert_eq!(greeting["messages"][0]["content"]["text"], "Greet Ada.");
}

#[test]
fn a_handler_that_does_not_speak_mcp_is_refused_with_the_attempted_requests() {
    let folder = Folder::with("page.wasm", own_server_uncached("page"));
    let server = StdioServer::start(&folder);
    let line = server.log.wait_for("WARN refused: ");
    let said = line.split_once("WARN refused: ").unwrap().1;
    insta::assert_snapshot!(said.trim_end(), @r#"it exports wasi:http/incoming-handler, but does not speak MCP: POST /mcp (server/discover): it answered 404 Not Found, "Not found"; POST / (server/discover): it answered 200 OK, "<h1>Hello</h1>"; POST / (initialize): it answered 200 OK, "<h1>Hello</h1>". A component for an HTTP host, such as Spin or wasmtime serve, is not a plugin plugin="page""#);
    let checked = ToolbayCommand::new(&folder)
        .args(["check", "plugins/page.wasm"])
        .run();
    assert!(
        checked.stderr.contains("does not speak MCP"),
        "{}",
        checked.stderr
    );
}

/// Returns a component that cannot be loaded, and therefore is in no compile cache.
fn own_server_uncached(name: &str) -> Vec<u8> {
    toolbay_testkit::guests::guest(name).unwrap()
}

#[test]
fn check_reports_the_transport_and_revision_of_a_server() {
    for (name, expected) in [
        (
            "server",
            "it is an MCP server over HTTP, at /mcp (MCP 2026-07-28)",
        ),
        (
            "sessions",
            "it is an MCP server over HTTP, at / (MCP 2025-06-18)",
        ),
        (
            "talker",
            "it is an MCP server on standard input and output (MCP 2025-11-25)",
        ),
    ] {
        let folder = Folder::with(&format!("{name}.wasm"), own_server(name));
        // The first result comes from the compiler, and the second from the compile cache.
        for _ in 0..2 {
            let checked = ToolbayCommand::new(&folder)
                .args(["check", &format!("plugins/{name}.wasm")])
                .run();
            assert!(
                checked.stdout.contains(expected),
                "{}\n{}",
                checked.stdout,
                checked.stderr
            );
        }
    }
}

/// Builds a server on standard input and output whose only response has this result.
fn server_with_result(result: &Value) -> Vec<u8> {
    let said = json!({"jsonrpc": "2.0", "id": 1, "result": result}).to_string() + "\n";
    let bytes = |bytes: &[u8]| {
        bytes
            .iter()
            .map(|byte| format!("\\{byte:02x}"))
            .collect::<Vec<_>>()
            .concat()
    };
    let vector = [
        16_u32.to_le_bytes(),
        u32::try_from(said.len()).unwrap().to_le_bytes(),
    ]
    .concat();
    wat::parse_str(format!(
        r#"(module
            (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
            (memory (export "memory") 1)
            (data (i32.const 0) "{}")
            (data (i32.const 16) "{}")
            (data (i32.const 65000) "tools/list")
            (func (export "_start")
                (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))))"#,
        bytes(&vector),
        bytes(said.as_bytes())
    ))
    .unwrap()
}

/// Like [`server_with_result`], with a list of tools.
fn server_with_tools(tools: &Value) -> Vec<u8> {
    server_with_result(
        &json!({"supportedVersions": [MODERN], "capabilities": {"tools": {}}, "tools": tools}),
    )
}

#[test]
fn a_server_with_an_invalid_tool_definition_keeps_its_other_tools() {
    let tools = json!([
        {"name": "bare", "inputSchema": {}, "annotations": {"readOnlyHint": "yes"}},
        {"name": "a/b", "inputSchema": {"type": "object"}},
        {"name": "list", "inputSchema": {"type": "array"}},
    ]);
    let folder = Folder::with("sloppy.wasm", server_with_tools(&tools));
    let list = || ToolbayCommand::new(&folder).args(["list"]).run().stdout;
    // The first list comes from the server, and the second from the compile cache.
    for _ in 0..2 {
        let listed = list();
        assert!(
            listed.contains("sloppy  ready") && listed.contains("\n    bare\n"),
            "{listed}"
        );
        assert!(
            listed.contains("! left out: tool \"a/b\": a name must have 1 to 128 characters"),
            "{listed}"
        );
        assert!(
            listed.contains("! left out: tool \"list\": its input schema is invalid"),
            "{listed}"
        );
        assert!(listed.contains("1 tool from 1 plugin\n"), "{listed}");
    }
    let checked = ToolbayCommand::new(&folder)
        .args(["check", "plugins/sloppy.wasm"])
        .run();
    assert!(
        checked.code == 0 && checked.stdout.contains("left out: tool \"a/b\""),
        "{checked}"
    );
    // A setting for the missing tool may be a protection, so the plugin is refused.
    for grant in [
        "[tools.list]\nrequire_approval = \"always\"",
        "[tools.\"a/b\"]\ndisabled = true",
        "enabled_tools = [\"list\"]",
    ] {
        folder.put("sloppy.toml", grant);
        let listed = list();
        assert!(
            listed.contains("sloppy  refused") && listed.contains("this tool is left out, because"),
            "{listed}"
        );
    }
    // No tool would remain.
    let folder = Folder::with(
        "sloppy.wasm",
        server_with_tools(&json!([{"name": "a/b", "inputSchema": {}}])),
    );
    let listed = ToolbayCommand::new(&folder).args(["list"]).run().stdout;
    assert!(
        listed.contains("! tool \"a/b\": a name must have 1 to 128 characters"),
        "{listed}"
    );
}

#[test]
fn an_error_names_the_list_that_failed() {
    let result =
        json!({"supportedVersions": [MODERN], "capabilities": {"prompts": {}}, "prompts": [{}]});
    let folder = Folder::with("prompts.wasm", server_with_result(&result));
    let listed = ToolbayCommand::new(&folder).args(["list"]).run().stdout;
    assert!(
        listed.contains("! listing what it offers failed: prompts/list: prompts[0]: missing field"),
        "{listed}"
    );
}

/// Calls a tool as a client with these capabilities.
fn call_with_capabilities(server: &HttpServer, mut params: Value, capabilities: Value) -> Value {
    params["_meta"] = json!({"io.modelcontextprotocol/clientCapabilities": capabilities});
    server
        .post_stateless("tools/call", params, &[])
        .response_message()
}

#[test]
fn questions_of_a_server_reach_the_client_round_by_round() {
    let folder = Folder::with("server.wasm", own_server("server"));
    let server = HttpServer::start(&folder);
    while !server.result("tools/list", json!({}))["tools"]
        .as_array()
        .unwrap()
        .iter()
        .any(|tool| tool["name"] == "ask")
    {
        std::thread::yield_now();
    }
    let call = json!({"name": "ask", "arguments": {}});
    let refused = call_with_capabilities(&server, call.clone(), json!({}));
    assert_eq!(refused["error"]["code"], -32021, "{refused}");
    let form = json!({"elicitation": {"form": {}}});
    // A client cannot forge the state that a server attaches to its questions.
    let forged = json!({
        "name": "ask", "arguments": {},
        "inputResponses": {"=state": {"=state": "second Eve"}, "answer": {"action": "accept", "content": {"color": "red"}}},
    });
    let asked = call_with_capabilities(&server, forged, form.clone());
    assert_eq!(
        asked["result"]["inputRequests"]["answer"]["params"]["message"], "Which name?",
        "{asked}"
    );
    let mut sent = call;
    for (member, answer) in [("name", "Ada"), ("color", "blue")] {
        let asked = call_with_capabilities(&server, sent.clone(), form.clone());
        let result = &asked["result"];
        assert_eq!(result["resultType"], "input_required", "{asked}");
        assert_eq!(
            result["inputRequests"]["answer"]["params"]["message"],
            format!("Which {member}?")
        );
        sent["requestState"] = result["requestState"].clone();
        sent["inputResponses"] =
            json!({"answer": {"action": "accept", "content": {member: answer}}});
    }
    let done = call_with_capabilities(&server, sent, form.clone());
    assert_eq!(result_text(&done["result"]), "Ada likes blue", "{done}");
    let needs = call_with_capabilities(&server, json!({"name": "need", "arguments": {}}), form);
    assert_eq!(needs["error"]["code"], -32021, "{needs}");
    assert_eq!(
        needs["error"]["data"]["requiredCapabilities"],
        json!({"sampling": {}})
    );
    assert_eq!(MODERN, "2026-07-28");
}

#[test]
fn a_grant_renames_limits_and_denies_as_for_any_plugin() {
    let folder = Folder::with("server.wasm", own_server("server"));
    folder.put("server.toml", "prefix = \"own\"\n[limits]\nfuel = 1000\n");
    let mut server = StdioServer::start(&folder);
    server.wait_for_tool("own_add");
    assert_eq!(server.failure("own_add", json!({"a": 1, "b": 2})).0, "fuel");
}

#[test]
fn calls_share_nothing() {
    let mut server = start_server("server", "add");
    for n in 0..50 {
        assert_eq!(
            server.call("add", json!({"a": n, "b": 1}))["structuredContent"]["sum"],
            f64::from(n + 1)
        );
    }
}
