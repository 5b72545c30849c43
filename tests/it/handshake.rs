//! The handshake of a session, in every revision.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::support::{Folder, LIST_CHANGED, StdioServer, TinyComponent, TinyTool};

/// Returns all revisions with a handshake.
fn revisions() -> Vec<String> {
    StdioServer::spawn(&Folder::new()).session_revisions()
}

/// Returns a tool with every optional member.
fn full_tool() -> TinyTool {
    TinyTool {
        title: Some("All of it".into()),
        description: Some("Says everything.\nIn two lines.".into()),
        input: r#"{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}"#.into(),
        output: Some(r#"{"type":"object","properties":{"n":{"type":"integer"}}}"#.into()),
        read_only: Some(true),
        icon: Some("data:image/png;base64,AAAA".into()),
        meta: Some(r#"{"example.com/since":3}"#.into()),
        ..TinyTool::new("eloquent")
    }
}

#[test]
fn every_revision_can_be_negotiated() {
    let folder = Folder::new();
    for revision in &revisions() {
        let mut server = StdioServer::spawn(&folder);
        let result = server.send_initialize(revision);
        assert_eq!(result["protocolVersion"], **revision);
        let mut capabilities = json!({
            "extensions": {
                "io.modelcontextprotocol/skills": {"directoryRead": true},
                "io.modelcontextprotocol/ui": {},
            },
            "logging": {},
            "prompts": {"listChanged": true},
            "resources": {"subscribe": true, "listChanged": true},
            "tools": {"listChanged": true},
        });
        if revision.as_str() > "2024-11-05" {
            capabilities["completions"] = json!({});
        }
        if *revision == "2025-11-25" {
            capabilities["tasks"] =
                json!({"cancel": {}, "list": {}, "requests": {"tools": {"call": {}}}});
        }
        assert_eq!(result["capabilities"], capabilities);
        assert_eq!(result["serverInfo"]["name"], "toolbay");
        assert_eq!(result["serverInfo"]["version"], env!("CARGO_PKG_VERSION"));
        assert_eq!(
            result["serverInfo"].get("title").is_some(),
            revision.as_str() >= "2025-06-18",
            "{result}"
        );
    }
}

#[test]
fn an_unknown_revision_is_answered_with_the_newest() {
    for asked in ["2024-10-07", "2026-07-28", "2999-01-01", "1.0", ""] {
        let mut server = StdioServer::spawn(&Folder::new());
        assert_eq!(
            server.send_initialize(asked)["protocolVersion"],
            "2025-11-25",
            "asked for {asked:?}"
        );
    }
}

#[test]
fn initialize_without_a_version_is_malformed() {
    let mut server = StdioServer::spawn(&Folder::new());
    assert_eq!(server.error("initialize", json!({}))["code"], -32602);
    assert_eq!(
        server.send_initialize("2025-11-25")["protocolVersion"],
        "2025-11-25"
    );
}

#[test]
fn only_ping_is_answered_before_initialize() {
    let folder = Folder::with("a.wasm", TinyComponent::new(&["a"]).build());
    let mut server = StdioServer::spawn(&folder);
    assert_eq!(server.result("ping", json!({})), json!({}));
    for (method, params) in [
        ("tools/list", json!({})),
        ("tools/call", json!({"name": "a"})),
    ] {
        let error = server.error(method, params);
        assert_eq!(error["code"], -32602, "{method}");
        assert!(
            error["message"].as_str().unwrap().contains("initialize"),
            "{error}"
        );
    }
}

#[test]
fn the_handshake_does_not_wait_for_plugins() {
    let folder = Folder::new();
    folder.put(
        "hung.wasm",
        TinyComponent::new(&["hung"])
            .before_list("(loop $for-ever (br $for-ever))")
            .build(),
    );
    folder.put("hung-at-start.wasm", {
        TinyComponent::new(&["hung"])
            .with_core_items("(func $spin (loop $for-ever (br $for-ever))) (start $spin)")
            .build()
    });
    folder.put("good.wasm", TinyComponent::new(&["good"]).build());
    // With these settings, the two plugins that hang do so for ten minutes.
    let config = "[describe]\nfuel = 1_000_000_000_000\ntimeout = \"10m\"";
    let mut server = StdioServer::start_with_config(&folder, config);
    server.wait_until_listed(&["good"]);
    assert_eq!(server.text("good", json!({})), "fine");
}

#[test]
fn a_plugin_that_hangs_is_refused_and_does_not_delay_other_plugins() {
    let folder = Folder::new();
    folder.put(
        "a.wasm",
        TinyComponent::new(&["a"])
            .before_list("(loop $for-ever (br $for-ever))")
            .build(),
    );
    folder.put("b.wasm", TinyComponent::new(&["b"]).build());
    let mut server = StdioServer::start_with_config(&folder, "[describe]\nfuel = 5_000_000");
    let line = server.log.wait_for("refused");
    assert!(
        line.contains("refused: listing what it offers failed: it used all of its fuel, 5,000,000 instructions"),
        "{line}"
    );
    server.wait_until_listed(&["b"]);
}

#[test]
fn tools_in_every_revision() {
    let list = TinyTool {
        output: Some(r#"{"type":"array"}"#.into()),
        ..TinyTool::new("returns-a-list")
    };
    let folder = Folder::with(
        "a.wasm",
        TinyComponent::with_tools(vec![full_tool(), list]).build(),
    );
    // Revisions that show the same as the previous one are left out.
    let mut shapes = String::new();
    let mut previous = Value::Null;
    for revision in &revisions() {
        let mut server = StdioServer::spawn(&folder).with_handshake(revision);
        server.wait_until_listed(&["eloquent", "returns-a-list"]);
        let tools = Value::from(server.tools());
        if tools != previous {
            let _ = writeln!(shapes, "{revision}\n{tools:#}");
        }
        previous = tools;
    }
    insta::assert_snapshot!(shapes);
}

#[test]
fn results_in_every_revision() {
    let folder = Folder::with(
        "a.wasm",
        TinyComponent::with_tools(vec![full_tool()])
            .with_structured(r#"{"n":1}"#)
            .build(),
    );
    for revision in &revisions() {
        let mut server = StdioServer::spawn(&folder).with_handshake(revision);
        server.wait_until_listed(&["eloquent"]);
        let result = server.call("eloquent", json!({"n": 1}));
        assert_eq!(result["content"], json!([{"type": "text", "text": "fine"}]));
        let structured = (revision.as_str() >= "2025-06-18").then(|| json!({"n": 1}));
        assert_eq!(
            result.get("structuredContent"),
            structured.as_ref(),
            "{revision}"
        );
    }
}

#[test]
fn changes_are_notified_only_after_the_client_is_initialized() {
    let folder = Folder::new();
    std::fs::write(
        folder.sibling_path("toolbay.toml"),
        "log = \"toolbay=debug\"",
    )
    .unwrap();
    let mut server = StdioServer::spawn(&folder);
    server.send_initialize("2025-11-25");
    assert!(server.tool_names().is_empty());
    folder.put("a.wasm", TinyComponent::new(&["a"]).build());
    server.log.wait_for("the lists changed");
    // The response to this ping would arrive after any notification of the change.
    server.result("ping", json!({}));
    assert!(server.take_notifications(LIST_CHANGED).is_empty());
    server.notify("notifications/initialized", json!({}));
    server.notification(LIST_CHANGED);
    assert_eq!(server.tool_names(), ["a"]);
}

#[test]
fn a_client_can_send_initialize_again() {
    let folder = Folder::with(
        "a.wasm",
        TinyComponent::with_tools(vec![full_tool()]).build(),
    );
    let mut server = StdioServer::spawn(&folder).with_handshake("2024-11-05");
    server.wait_until_listed(&["eloquent"]);
    assert!(server.tools()[0].get("title").is_none());
    assert_eq!(
        server.send_initialize("2025-11-25")["protocolVersion"],
        "2025-11-25"
    );
    assert_eq!(server.tools()[0]["title"], "All of it");
}

/// Returns a folder with a plugin that becomes ready and one that never does.
fn folder_with_hanging_plugin() -> Folder {
    let folder = Folder::with("ready.wasm", TinyComponent::new(&["ready"]).build());
    folder.put(
        "hung.wasm",
        TinyComponent::new(&["hung"])
            .before_list("(loop $for-ever (br $for-ever))")
            .build(),
    );
    folder.write_config(
        "[server]\nstartup_wait = \"10m\"\n[describe]\nfuel = 1_000_000_000_000\ntimeout = \"10m\"",
    );
    folder
}

#[test]
fn a_client_that_follows_changes_lists_the_tools_that_are_ready() {
    let folder = folder_with_hanging_plugin();
    for name in ["claude-code", "Visual Studio Code - Insiders"] {
        let mut server = StdioServer::spawn(&folder);
        let client = json!({"name": name, "version": "1"});
        let hello =
            json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client});
        server.result("initialize", hello);
        server.notify("notifications/initialized", json!({}));
        // The client is notified about plugins that were not ready.
        while server.tool_names() != ["ready"] {
            server.notification(LIST_CHANGED);
        }
    }
    // A client that subscribes requests notifications itself.
    let mut server = StdioServer::spawn(&folder);
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {}});
    let wanted = json!({"notifications": {"toolsListChanged": true}, "_meta": meta});
    let listen =
        json!({"jsonrpc": "2.0", "id": 700, "method": "subscriptions/listen", "params": wanted});
    server.send(listen.to_string());
    server.notification("notifications/subscriptions/acknowledged");
    while server.result("tools/list", json!({"_meta": meta}))["tools"] == json!([]) {
        server.notification(LIST_CHANGED);
    }
}

#[test]
fn a_client_that_lists_once_waits_for_all_plugins() {
    let folder = folder_with_hanging_plugin();
    let mut server = StdioServer::spawn(&folder).with_handshake("2025-11-25");
    server.send(json!({"jsonrpc": "2.0", "id": 700, "method": "tools/list"}).to_string());
    server.log.wait_for("still loading");
    folder.remove("hung.wasm");
    assert_eq!(server.finish_call(700)["tools"][0]["name"], "ready");
}
