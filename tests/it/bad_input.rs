//! Invalid files are refused with one clear line each, and the other plugins serve.

use serde_json::json;

use crate::support::wit::build_component;
use crate::support::{
    Folder, StdioServer, TinyComponent, TinyTool, ToolbayCommand, error_kind_and_text, hostile,
};

/// Returns a folder in which every file except `good.wasm` is invalid, each in a different way.
fn bad_folder() -> Folder {
    let folder = Folder::with("good.wasm", TinyComponent::new(&["good"]).build());
    let whole = TinyComponent::new(&["whole"]).build();
    let with_input = |input: &str| {
        TinyComponent::with_tools(vec![TinyTool {
            input: input.to_owned(),
            ..TinyTool::new("t")
        }])
        .build()
    };
    let with_output = |output: &str| {
        TinyComponent::with_tools(vec![TinyTool {
            output: Some(output.to_owned()),
            ..TinyTool::new("t")
        }])
        .build()
    };
    let files = [
        ("text", b"#!/bin/sh\necho hello\n".to_vec()),
        ("empty", Vec::new()),
        ("truncated", whole[..whole.len() / 2].to_vec()),
        (
            "core-module",
            wat::parse_str("(module (func (export \"run\")))").unwrap(),
        ),
        ("nothing-exported", wat::parse_str("(component)").unwrap()),
        ("resources", resources()),
        ("newer-contract", newer_contract()),
        ("garbled", garbled(&whole)),
        ("unknown-import", unknown_import()),
        ("no-schema", with_input("not JSON")),
        ("schema-of-a-list", with_input(r#"{"type":"array"}"#)),
        ("schema-of-a-number", with_input("7")),
        (
            "schema-with-a-mistake",
            with_input(r#"{"type":"object","properties":{"a":{"type":"strin"}}}"#),
        ),
        (
            "schema-from-elsewhere",
            with_input(r#"{"type":"object","$ref":"https://example.com/a.json"}"#),
        ),
        ("output-schema", with_output("[]")),
        (
            "meta",
            TinyComponent::with_tools(vec![TinyTool {
                meta: Some("[]".into()),
                ..TinyTool::new("t")
            }])
            .build(),
        ),
        ("empty-name", TinyComponent::new(&[""]).build()),
        ("bad-name", TinyComponent::new(&["a b"]).build()),
        (
            "escape-in-name",
            TinyComponent::new(&["\u{1b}[31mred"]).build(),
        ),
        ("long-name", TinyComponent::new(&[&"x".repeat(129)]).build()),
        (
            "twice",
            TinyComponent::new(&["same", "other", "same"]).build(),
        ),
        (
            "same-as-good",
            TinyComponent::new(&["good", "same-as-good"]).build(),
        ),
        ("grant-key", whole.clone()),
        ("grant-value", whole.clone()),
        ("grant-syntax", whole.clone()),
        ("grant-text", whole.clone()),
        ("grant-mount", whole),
    ];
    for (id, content) in files {
        folder.put(&format!("{id}.wasm"), content);
    }
    folder.put("grant-key.toml", "[limits]\nfuel = 1\ntimeuot = \"1s\"");
    folder.put("grant-value.toml", "[limits]\nmemory = \"lots\"");
    folder.put("grant-syntax.toml", "prefix = \n");
    folder.put("grant-text.toml", [0xff, 0xfe]);
    folder.put(
        "grant-mount.toml",
        "[[permissions.mounts]]\nhost = \"x\"\nguest = \"x\"\naccess = \"write\"",
    );
    folder
}

/// Returns a component whose functions cannot be tools.
fn resources() -> Vec<u8> {
    let wit = "package a:b; world w { export shop: interface { resource basket; open: func() -> own<basket>; } }";
    build_component(
        wit,
        r#"(func (export "shop#open") (result i32) unreachable)"#,
    )
}

/// Returns a component that exports a version of the contract that does not exist.
fn newer_contract() -> Vec<u8> {
    wat::parse_str(r#"(component (instance $nothing) (export "toolbay:plugin/tools@0.9.0" (instance $nothing)))"#)
        .unwrap()
}

/// Returns a component whose code is invalid.
fn garbled(whole: &[u8]) -> Vec<u8> {
    let mut bytes = whole.to_vec();
    let at = bytes
        .windows(6)
        .position(|window| window == b"memory")
        .unwrap();
    bytes[at - 1] = 0xff;
    bytes
}

fn unknown_import() -> Vec<u8> {
    TinyComponent::new(&["t"])
        .with_imports(r#"(import "acme:database/query@1.0.0" (instance (export "run" (func))))"#)
        .build()
}

#[test]
fn list_names_the_error_of_each_file() {
    let outcome = ToolbayCommand::new(&bad_folder()).args(["list"]).run();
    assert_eq!(outcome.code, 0, "{outcome}");
    insta::assert_snapshot!(outcome);
}

#[test]
fn list_reports_the_same_in_json() {
    let outcome = ToolbayCommand::new(&bad_folder())
        .args(["list", "--json"])
        .run();
    let listed: serde_json::Value = serde_json::from_str(&outcome.raw_stdout).unwrap();
    let tools: Vec<_> = listed["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| &tool["name"])
        .collect();
    assert_eq!(tools, ["good", "same-as-good"]);
    for (id, plugin) in listed["plugins"].as_object().unwrap() {
        let serves = ["good", "same-as-good"].contains(&id.as_str());
        assert_eq!(
            plugin["status"],
            if serves { "ready" } else { "refused" },
            "{id}"
        );
        let problems = plugin["problems"].as_array().map_or(0, Vec::len);
        assert_eq!(
            problems,
            usize::from(id != "good"),
            "{id}: one line says what is wrong: {plugin}"
        );
    }
}

#[test]
fn other_plugins_serve_and_each_refusal_is_logged() {
    let folder = bad_folder();
    let mut server = StdioServer::start(&folder);
    server.wait_until_listed(&["good", "same-as-good"]);
    assert_eq!(server.text("good", json!({})), "fine");
    let refused = [
        "text",
        "core-module",
        "resources",
        "unknown-import",
        "no-schema",
        "twice",
        "grant-key",
        "grant-mount",
    ];
    for id in refused {
        let plugin = format!("plugin=\"{id}\"");
        let line = server.log.wait_for(&plugin);
        assert!(line.contains("WARN refused: "), "{line}");
    }
    // A file that stays incomplete is reported after a while.
    let line = server.log.wait_for("plugin=\"truncated\"");
    assert!(
        line.contains("WARN refused: the file is incomplete: it ends in the middle of a section"),
        "{line}"
    );
    let log = server.log.text();
    for id in refused {
        assert_eq!(log.matches(&format!("plugin=\"{id}\"")).count(), 1, "{log}");
    }
}

#[test]
fn list_counts_plugins_whose_tools_are_all_offered_by_others() {
    let folder = Folder::with("a.wasm", TinyComponent::new(&["sum"]).build());
    for id in ["b", "c"] {
        folder.put(
            &format!("{id}.wasm"),
            TinyComponent::new(&["sum"]).with_text(id).build(),
        );
    }
    let list = || ToolbayCommand::new(&folder).args(["list"]).run().stdout;
    assert!(
        list().ends_with("1 tool from 1 plugin; 2 plugins offer nothing\n"),
        "{}",
        list()
    );
    folder.put("c.wasm", "no component");
    assert!(
        list().ends_with("1 tool from 1 plugin; 1 plugin offers nothing; 1 file refused\n"),
        "{}",
        list()
    );
}

#[test]
fn of_two_tools_with_one_name_that_of_the_first_plugin_is_offered() {
    let folder = Folder::with(
        "b.wasm",
        TinyComponent::new(&["sum", "b"]).with_text("of b").build(),
    );
    let mut server = StdioServer::start(&folder);
    server.wait_until_listed(&["b", "sum"]);
    assert_eq!(server.text("sum", json!({})), "of b");
    // The lower id wins, not the older file: the result must not depend on the folder's history.
    folder.put(
        "a.wasm",
        TinyComponent::new(&["sum", "a"]).with_text("of a").build(),
    );
    server.wait_until_listed(&["a", "b", "sum"]);
    assert_eq!(server.text("sum", json!({})), "of a");
    assert_eq!(server.text("b", json!({})), "of b");
    // The solution that `list` suggests.
    folder.put("b.toml", "prefix = \"b\"");
    server.wait_until_listed(&["a", "b_b", "b_sum", "sum"]);
    assert_eq!(server.text("b_sum", json!({})), "of b");
    folder.remove("a.wasm");
    server.wait_until_listed(&["b_b", "b_sum"]);
}

/// Returns a folder with a tool that has a schema, and arguments that violate it in three places.
fn strict() -> (Folder, serde_json::Value) {
    let input = r#"{"type":"object","required":["unit"],"additionalProperties":false,"properties":{
        "unit":{"enum":["C","F"]},"days":{"type":"integer","minimum":1},
        "at":{"type":"object","properties":{"lat/lon":{"type":"array","items":{"type":"number"}}}}}}"#;
    let tool = TinyTool {
        input: input.into(),
        ..TinyTool::new("forecast")
    };
    let arguments = json!({"unit": "K", "days": 0, "at": {"lat/lon": [1, "north"]}});
    (
        Folder::with("strict.wasm", TinyComponent::with_tools(vec![tool]).build()),
        arguments,
    )
}

#[test]
fn invalid_arguments_are_rejected_with_all_violations() {
    let (folder, arguments) = strict();
    let mut server = StdioServer::start(&folder);
    let (kind, text) = error_kind_and_text(&server.call("forecast", arguments));
    assert_eq!(kind, "invalid-arguments");
    let mut lines: Vec<&str> = text.lines().collect();
    lines[1..].sort_unstable();
    assert_eq!(
        lines,
        [
            "The arguments do not match the tool's input schema:",
            "/at/lat~1lon/1: \"north\" is not of type \"number\"",
            "/days: 0 is less than the minimum of 1",
            "/unit: \"K\" is not one of \"C\" or \"F\"",
            "For example: {\"unit\":\"C\"}",
        ]
    );
    let (_, text) = error_kind_and_text(&server.call("forecast", json!({"days": 1, "nights": 2})));
    assert!(
        text.contains("(root): \"unit\" is a required property"),
        "{text}"
    );
    assert!(text.contains("nights"), "{text}");
    assert_eq!(server.text("forecast", json!({"unit": "C"})), "fine");
}

#[test]
fn before_2025_11_25_invalid_arguments_are_a_protocol_error() {
    let (folder, arguments) = strict();
    for revision in ["2024-11-05", "2025-03-26", "2025-06-18"] {
        let mut server = StdioServer::spawn(&folder).with_handshake(revision);
        server.wait_for_tool("forecast");
        let error = server.error(
            "tools/call",
            json!({"name": "forecast", "arguments": arguments}),
        );
        assert_eq!(error["code"], -32602);
        let mut pointers: Vec<&str> = error["data"]
            .as_array()
            .unwrap()
            .iter()
            .map(|violation| violation["pointer"].as_str().unwrap())
            .collect();
        pointers.sort_unstable();
        assert_eq!(pointers, ["/at/lat~1lon/1", "/days", "/unit"], "{revision}");
    }
}

#[test]
fn at_most_ten_violations_are_reported_and_none_quotes_a_long_value() {
    let input = r#"{"type":"object","additionalProperties":{"type":"integer"}}"#;
    let folder = Folder::with(
        "a.wasm",
        TinyComponent::with_tools(vec![TinyTool {
            input: input.into(),
            ..TinyTool::new("a")
        }])
        .build(),
    );
    let mut server = StdioServer::start(&folder);
    let long = "x".repeat(10_000);
    let arguments: serde_json::Map<_, _> = (0..50).map(|n| (n.to_string(), json!(long))).collect();
    let (_, text) = error_kind_and_text(&server.call("a", arguments.into()));
    assert_eq!(text.lines().count(), 11, "{text}");
    assert!(text.len() < 5000, "{} bytes", text.len());
}

#[test]
fn a_guest_reads_the_arguments_that_were_checked() {
    let mut server = StdioServer::start(&Folder::with("hostile.wasm", hostile()));
    server.wait_for_tool("echo");
    // Of duplicate keys, the last one counts, both for validation and for the guest.
    let call = r#"{"jsonrpc":"2.0","id":"d","method":"tools/call",
        "params":{"name":"echo","arguments":{"text":7,"text":"last"}}}"#;
    server.send(call.replace('\n', " "));
    let answer = server.wait_for("the answer", |message| message["id"] == "d");
    assert_eq!(answer["result"]["content"][0]["text"], "last");
}
