//! Loading a plugin does not slow down the clients that use the server meanwhile.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::hostile::exports;
use crate::support::{Folder, StdioServer, TinyComponent, TinyTool};

/// Maximum time until a ping is answered, on a machine that also compiles and runs other tests.
const PROMPT: Duration = Duration::from_secs(4);

/// Adds a plugin to the folder of a running server, and sends pings one after the other until the
/// log has this line.
fn pings_until(plugin: &[u8], line: &str) {
    let folder = Folder::with("echo.wasm", TinyComponent::new(&["echo"]).build());
    let mut server = StdioServer::start(&folder);
    server.wait_for_tool("echo");
    folder.put("large.wasm", plugin);
    server.wait_until(line, |server| {
        let began = Instant::now();
        server.result("ping", json!({}));
        assert!(
            began.elapsed() < PROMPT,
            "a ping took {:?}: {}",
            began.elapsed(),
            server.log.text()
        );
        server.log.text().contains(line)
    });
    assert_eq!(server.text("echo", json!({})), "fine");
}

#[test]
fn pings_are_answered_while_a_component_with_a_hundred_thousand_functions_is_refused() {
    pings_until(
        &exports(100_000),
        "refused: exports 100,000 functions, but at most 4,096 are allowed",
    );
}

#[test]
fn pings_are_answered_while_thousands_of_functions_become_tools() {
    pings_until(&exports(4_096), "loaded plugin=\"large\" tools=4096");
}

#[test]
fn types_that_many_functions_share_are_read_up_to_the_memory_limit() {
    // One record of 200 fields with long names, which each of 4,096 functions takes.
    let mut fields = String::new();
    for n in 0..200 {
        let _ = write!(fields, "(field \"field-with-a-rather-long-name-{n}\" u8) ");
    }
    let mut text = format!(
        "(component
           (core module $m (memory (export \"memory\") 1)
             (func (export \"realloc\") (param i32 i32 i32 i32) (result i32) (i32.const 0))
             (func (export \"f\") (param i32)))
           (core instance $i (instantiate $m))
           (alias core export $i \"memory\" (core memory $memory))
           (alias core export $i \"realloc\" (core func $realloc))
           (type $record' (record {fields})) (export $record \"record\" (type $record'))
           (func $f (param \"x\" $record) (canon lift (core func $i \"f\") (memory $memory) (realloc $realloc)))"
    );
    for n in 0..4_096 {
        let _ = write!(text, "(export \"f{n}\" (func $f))");
    }
    let plugin = wat::parse_str(text + ")").unwrap();
    pings_until(
        &plugin,
        "refused: its schemas are larger than 1.0 MiB in total",
    );
}

#[test]
fn the_description_of_the_tools_of_a_plugin_is_limited_by_describe_size() {
    let description = "x".repeat(5 << 20);
    let large = || {
        TinyComponent::with_tools(vec![TinyTool {
            description: Some(description.clone()),
            ..TinyTool::new("a")
        }])
        .build()
    };
    let refused = StdioServer::start(&Folder::with("large.wasm", large()));
    let line = refused.log.wait_for("WARN refused: ");
    assert!(
        line.contains("larger than 4.0 MiB in total (to allow more, raise describe.size)"),
        "{line}"
    );
    let mut server = StdioServer::start_with_config(
        &Folder::with("large.wasm", large()),
        "[describe]\nsize = \"6MiB\"",
    );
    server.wait_for_tool("a");
    assert_eq!(
        server.tools()[0]["description"].as_str().map(str::len),
        Some(5 << 20)
    );
}

#[test]
fn a_page_of_the_list_ends_after_four_megabytes() {
    let folder = Folder::new();
    for name in ["a", "b", "c"] {
        let tool = TinyTool {
            description: Some("x".repeat(3 << 19)),
            ..TinyTool::new(name)
        };
        folder.put(
            &format!("{name}.wasm"),
            TinyComponent::with_tools(vec![tool]).build(),
        );
    }
    let mut server = StdioServer::start(&folder);
    server.wait_until_listed(&["a", "b", "c"]);
    let first = server.result("tools/list", json!({}));
    let names = |page: &serde_json::Value| {
        page["tools"]
            .as_array()
            .unwrap()
            .iter()
            .map(|tool| tool["name"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(names(&first), ["a", "b"]);
    let second = server.result("tools/list", json!({"cursor": first["nextCursor"]}));
    assert_eq!(
        (names(&second), second.get("nextCursor")),
        (vec!["c".to_owned()], None)
    );
}
