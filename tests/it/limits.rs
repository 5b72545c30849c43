//! Every limit of a call: a guest reaches it, and the error names the limit and the key that raises
//! it. With a higher limit the call works. The call after an error works too.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::{Value, json};
use toolbay_model::Limits;

use crate::support::{Folder, StdioServer, TinyComponent, hostile};

/// A guest that reaches a limit.
struct Case {
    /// The plugin's id, which is also the key in `[limits]`.
    id: &'static str,
    /// The key's value in the grant, and a value with which the same call works.
    tight: &'static str,
    roomy: &'static str,
    component: Vec<u8>,
    tool: &'static str,
    arguments: Value,
}

impl Case {
    fn hostile(
        id: &'static str,
        tight: &'static str,
        roomy: &'static str,
        tool: &'static str,
        arguments: Value,
    ) -> Self {
        Self {
            id,
            tight,
            roomy,
            component: hostile(),
            tool,
            arguments,
        }
    }

    fn tiny(
        id: &'static str,
        tight: &'static str,
        roomy: &'static str,
        component: TinyComponent,
    ) -> Self {
        Self {
            id,
            tight,
            roomy,
            component: component.build(),
            tool: "a",
            arguments: json!({}),
        }
    }

    /// Returns a call that works even under the low limit, if there is one.
    fn harmless(&self) -> Option<&'static str> {
        (self.tool != "a").then_some("count")
    }
}

fn cases() -> Vec<Case> {
    vec![
        Case::hostile(
            "fuel",
            "1_000_000",
            "1_000_000_000",
            "burn",
            json!({"n": 1_000_000}),
        ),
        Case::hostile(
            "timeout",
            "\"20ms\"",
            "\"1m\"",
            "burn",
            json!({"n": 100_000_000}),
        ),
        Case::hostile(
            "memory",
            "\"4MiB\"",
            "\"64MiB\"",
            "allocate",
            json!({"n": 8}),
        ),
        Case::hostile(
            "transfer",
            "\"64KiB\"",
            "\"1MiB\"",
            "big_output",
            json!({"n": 100_000}),
        ),
        Case::hostile(
            "output",
            "\"1KiB\"",
            "\"1MiB\"",
            "big_output",
            json!({"n": 1025}),
        ),
        Case::hostile("output_items", "2", "3", "many_items", json!({"n": 3})),
        Case::hostile(
            "stdio",
            "\"4KiB\"",
            "\"1MiB\"",
            "flood_stdout",
            json!({"n": 100_000}),
        ),
        Case::hostile(
            "handles",
            "20",
            "1_000",
            "hold_open",
            json!({"path": "/gate/file", "n": 50}),
        ),
        Case::tiny(
            "random",
            "\"1KiB\"",
            "\"64KiB\"",
            component_with_random_bytes(1025),
        ),
        Case::tiny(
            "table_elements",
            "100",
            "101",
            component_with_growing_table(101),
        ),
        Case::tiny(
            "memories",
            "2",
            "3",
            TinyComponent::new(&["a"]).with_core_items("(memory 1) (memory 1)"),
        ),
        Case::tiny("instances", "1", "2", TinyComponent::new(&["a"])),
    ]
}

/// Builds a component that requests `length` bytes of random data.
fn component_with_random_bytes(length: u64) -> TinyComponent {
    TinyComponent::new(&["a"])
        .with_imports(
            r#"(import "wasi:random/random@0.2.0" (instance $random
                 (export "get-random-bytes" (func (param "len" u64) (result (list u8))))))
               (alias export $random "get-random-bytes" (func $bytes))
               (core func $import (canon lower (func $bytes) (memory $memory) (realloc $realloc)))"#,
        )
        .with_core_items(r#"(import "host" "import" (func $bytes (param i64 i32)))"#)
        .before_call(&format!("(call $bytes (i64.const {length}) (i32.const 8))"))
}

fn component_with_growing_table(size: u32) -> TinyComponent {
    TinyComponent::new(&["a"]).with_core_items("(table $table 1 funcref)").before_call(&format!(
        "(if (i32.eq (table.grow $table (ref.null func) (i32.const {})) (i32.const -1)) (then unreachable))",
        size - 1
    ))
}

fn start_with_grants(value: fn(&Case) -> &'static str) -> (StdioServer, Vec<Case>) {
    let folder = Folder::new();
    let gate = folder.create_gate();
    std::fs::write(folder.sibling_path("gate/file"), "").unwrap();
    let cases = cases();
    for case in &cases {
        let grant = format!(
            "prefix = \"{}\"\n{gate}[limits]\n{} = {}",
            case.id,
            case.id,
            value(case)
        );
        folder.put(&format!("{}.toml", case.id), grant);
        folder.put(&format!("{}.wasm", case.id), &case.component);
    }
    let mut server = StdioServer::start(&folder);
    for case in &cases {
        server.wait_for_tool(&format!("{}_{}", case.id, case.tool));
    }
    (server, cases)
}

/// A key without a case might not be enforced, or might have no message.
#[test]
fn every_limit_has_a_case() {
    let cases = cases();
    let reached = cases
        .iter()
        .map(|case| case.id)
        .chain(["log", "concurrency"]);
    // The limits that the tests in `requests` cover with an HTTP server.
    let reached = reached.chain(["http_requests", "http_bytes", "http_connections"]);
    // The limits that the tests in `sockets` cover with a TCP server.
    let reached = reached.chain(["tcp_connections", "tcp_bytes"]);
    // The limits that the tests in `questions` cover with a client that answers.
    let reached: BTreeSet<&str> = reached
        .chain(["ask_rounds", "ask_timeout", "journal"])
        .collect();
    assert_eq!(reached, Limits::KEYS.iter().copied().collect());
}

#[test]
fn every_limit_ends_the_call_with_an_error_that_names_it() {
    let (mut server, cases) = start_with_grants(|case| case.tight);
    let mut said = String::new();
    for case in &cases {
        let (kind, text) = server.failure(
            &format!("{}_{}", case.id, case.tool),
            case.arguments.clone(),
        );
        assert!(
            text.contains(&format!("raise limits.{})", case.id)),
            "{}: {text}",
            case.id
        );
        let _ = writeln!(said, "{} -> {kind}: {text}", case.id);
        if let Some(tool) = case.harmless() {
            assert_eq!(
                server.text(&format!("{}_{tool}", case.id), json!({})),
                "1",
                "after {}",
                case.id
            );
        }
    }
    insta::assert_snapshot!(said);
}

/// `log` and `concurrency` do not end calls: one drops messages, the other makes calls wait.
#[test]
fn messages_beyond_the_log_limit_are_dropped_and_counted() {
    let folder = Folder::with("tight.wasm", hostile());
    folder.put("tight.toml", "prefix = \"tight\"\n[limits]\nlog = \"1KiB\"");
    folder.put("roomy.wasm", hostile());
    folder.put("roomy.toml", "prefix = \"roomy\"\n[limits]\nlog = \"8MiB\"");
    let mut server = StdioServer::start(&folder);
    for id in ["tight", "roomy"] {
        server.wait_for_tool(&format!("{id}_log_flood"));
        let result = server.call(&format!("{id}_log_flood"), json!({"n": 200}));
        assert!(result.get("isError").is_none(), "{id}: {result}");
    }
    let line = server.log.wait_for("(limits.log)");
    assert!(
        line.contains("tight") && line.contains("dropped="),
        "{line}"
    );
    assert_eq!(
        server.log.text().matches("(limits.log)").count(),
        1,
        "only one of the two met its limit"
    );
}

#[test]
fn the_grant_raises_every_limit() {
    let (mut server, cases) = start_with_grants(|case| case.roomy);
    for case in cases {
        let result = server.call(&format!("{}_{}", case.id, case.tool), case.arguments);
        assert!(
            result.get("isError").is_none(),
            "{} = {}: {result}",
            case.id,
            case.roomy
        );
    }
}

#[test]
fn every_default_limit_holds() {
    let folder = Folder::with("hostile.wasm", hostile());
    folder.put(
        "hostile.toml",
        folder.create_gate() + "[limits]\noversize = \"error\"\n",
    );
    folder.put("random.wasm", component_with_random_bytes(65_537).build());
    folder.put("table.wasm", component_with_growing_table(20_001).build());
    folder.put("table.toml", "prefix = \"table\"");
    std::fs::write(folder.sibling_path("gate/file"), "").unwrap();
    let mut server = StdioServer::start(&folder);
    server.wait_for_tool("count");
    server.wait_for_tool("table_a");
    let calls = [
        ("loop_forever", json!({})),
        ("hoard", json!({})),
        ("recurse", json!({})),
        ("big_output", json!({"n": (1 << 20) + 1})),
        ("big_output", json!({"n": 17 << 20})),
        ("many_items", json!({"n": 1001})),
        ("flood_stdout", json!({"n": 100_000_000})),
        ("flood_stderr", json!({"n": 100_000_000})),
        ("hold_open", json!({"path": "/gate/file", "n": 2000})),
        ("a", json!({})),
        ("table_a", json!({})),
    ];
    let mut said = String::new();
    for (tool, arguments) in calls {
        let (kind, text) = server.failure(tool, arguments);
        let _ = writeln!(said, "{tool} -> {kind}: {text}");
        assert_eq!(server.text("count", json!({})), "1", "after {tool}");
    }
    insta::assert_snapshot!(said);
}

#[test]
fn a_deadline_ends_a_call_that_waits_in_the_host() {
    let folder = Folder::with("hostile.wasm", hostile());
    folder.put("hostile.toml", "[limits]\ntimeout = \"50ms\"");
    let mut server = StdioServer::start(&folder);
    let (kind, text) = server.failure("sleep_hour", json!({}));
    assert_eq!(kind, "deadline");
    assert_eq!(
        text,
        "The tool did not finish within 50ms (to allow more, raise limits.timeout)."
    );
    assert_eq!(server.text("count", json!({})), "1");
}

#[test]
fn all_memories_of_a_component_count_together() {
    let folder = Folder::new();
    // Three memories of 1 MiB and one memory of one page, with a limit of 3.5 MiB.
    folder.put(
        "a.wasm",
        TinyComponent::new(&["a"])
            .with_core_items("(memory 16) (memory 16) (memory 16)")
            .build(),
    );
    folder.put("a.toml", "[limits]\nmemory = \"3500KiB\"");
    folder.put(
        "b.wasm",
        TinyComponent::new(&["b"])
            .with_core_items("(memory 16) (memory 16) (memory 25)")
            .build(),
    );
    folder.put("b.toml", "[limits]\nmemory = \"3500KiB\"");
    let mut server = StdioServer::start(&folder);
    server.wait_until_listed(&["a", "b"]);
    assert_eq!(server.text("a", json!({})), "fine");
    let (kind, text) = server.failure("b", json!({}));
    assert_eq!(
        (kind.as_str(), text.as_str()),
        (
            "memory",
            "The tool needed more than 3.4 MiB of memory (to allow more, raise limits.memory)."
        )
    );
}

#[test]
fn log_lines_past_the_limit_are_dropped() {
    let folder = Folder::with("tight.wasm", hostile());
    folder.put("tight.toml", "prefix = \"tight\"\n[limits]\nlog = \"4KiB\"");
    folder.put("roomy.wasm", hostile());
    folder.put("roomy.toml", "prefix = \"roomy\"\n[limits]\nlog = \"1MiB\"");
    let mut server = StdioServer::start(&folder);
    server.text("tight_log_flood", json!({"n": 100}));
    server.text("roomy_log_flood", json!({"n": 100}));
    server.log.wait_for("line 99 ");
    let log = server.log.text();
    let lines = |plugin: &str| {
        log.lines()
            .filter(|line| line.contains(plugin) && line.contains("xxx"))
            .count()
    };
    assert_eq!(
        (lines("plugin=\"tight\""), lines("plugin=\"roomy\"")),
        (5, 100)
    );
    assert!(
        log.contains("The tool logged more than 4.0 KiB; further lines are dropped (to allow more, raise limits.log)."),
        "{log}"
    );
}

#[test]
fn the_concurrency_limit_applies_to_each_plugin_separately() {
    let folder = Folder::with("one.wasm", hostile());
    folder.put(
        "one.toml",
        format!(
            "prefix = \"one\"\n{}[limits]\nconcurrency = 1",
            folder.create_gate()
        ),
    );
    folder.put("two.wasm", hostile());
    folder.put(
        "two.toml",
        format!(
            "prefix = \"two\"\n{}[limits]\nconcurrency = 2",
            folder.create_gate()
        ),
    );
    let mut server = StdioServer::start_with_config(
        &folder,
        "[server]\nsuspended_calls = 0\nqueue_timeout = \"50ms\"",
    );
    let mut waiting = Vec::new();
    for tool in ["one_wait_for_gate", "two_wait_for_gate"] {
        waiting.push(server.start_call_with_progress(tool, json!({})));
        server.notification("notifications/progress");
    }
    let (kind, text) = server.failure("one_count", json!({}));
    assert_eq!(
        (kind.as_str(), text.as_str()),
        (
            "busy",
            "The tool's plugin is already running 1 call (to allow more, raise limits.concurrency). Retry after 100 ms."
        )
    );
    assert_eq!(server.text("two_count", json!({})), "1");
    folder.open_gate();
    for id in waiting {
        server.finish_call(id);
    }
    assert_eq!(server.text("one_count", json!({})), "1");
}
