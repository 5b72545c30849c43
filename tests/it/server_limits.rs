//! The limits of the whole process, and the ceilings that the server sets for grants.

use std::fmt::Write as _;

use serde_json::json;

use crate::support::{Folder, StdioServer, TinyComponent, TinyTool, ToolbayCommand, hostile};

/// Creates a folder with two plugins of the hostile guest, `one` and `two`, which share a gate.
fn folder_with_two_plugins() -> Folder {
    let folder = Folder::new();
    for id in ["one", "two"] {
        folder.put(&format!("{id}.wasm"), hostile());
        folder.put(
            &format!("{id}.toml"),
            format!("prefix = \"{id}\"\n{}", folder.create_gate()),
        );
    }
    folder
}

#[test]
fn a_full_server_rejects_calls_as_busy_with_a_retry_delay() {
    let cases = [
        (
            "calls = 1",
            "The server is already running 1 call (to allow more, raise server.calls).",
        ),
        (
            "memory = \"200MiB\"",
            "Running calls have reserved the 200.0 MiB of memory that the server may use (to allow more, raise \
             server.memory).",
        ),
        (
            "calls_per_caller = 1",
            "The server is already running 1 call from this client (to allow more, raise server.calls_per_caller).",
        ),
    ];
    for (key, why) in cases {
        let folder = folder_with_two_plugins();
        let mut server = StdioServer::start_with_config(
            &folder,
            &format!("[server]\nsuspended_calls = 0\n{key}\nqueue_timeout = \"250ms\""),
        );
        let first = server.start_call_with_progress("one_wait_for_gate", json!({}));
        server.notification("notifications/progress");
        let result = server.call("two_count", json!({}));
        assert_eq!(
            result,
            json!({
                "content": [{"type": "text", "text": format!("{why} Retry after 250 ms.")}],
                "isError": true,
                "_meta": {"dev.toolbay/error": "busy", "dev.toolbay/retry-after-ms": 250}
            }),
            "{key}"
        );
        // Other requests are not calls.
        server.result("ping", json!({}));
        folder.open_gate();
        server.finish_call(first);
        assert_eq!(server.text("two_count", json!({})), "1", "{key}");
    }
}

#[test]
fn the_queue_of_a_client_is_bounded() {
    let folder = folder_with_two_plugins();
    let mut server = StdioServer::start_with_config(
        &folder,
        "[server]\nsuspended_calls = 0\ncalls_per_caller = 1\nqueue = 2\nqueue_timeout = \"1m\"",
    );
    let mut ids = vec![server.start_call_with_progress("one_wait_for_gate", json!({}))];
    server.notification("notifications/progress");
    ids.extend((0..2).map(|_| server.start_call("one_count", json!({}))));
    // One call runs and two wait. The fourth is rejected at once, and not after a minute.
    let (kind, text) = server.failure("one_count", json!({}));
    assert_eq!(kind, "busy");
    assert!(
        text.starts_with("2 calls from this client are already waiting (to allow more, raise server.queue). Retry "),
        "{text}"
    );
    folder.open_gate();
    for id in ids {
        assert!(server.finish_call(id).get("isError").is_none());
    }
    assert_eq!(server.text("one_count", json!({})), "1");
}

#[test]
fn waiting_calls_get_their_turn() {
    let folder = folder_with_two_plugins();
    let mut server = StdioServer::start_with_config(
        &folder,
        "[server]\nsuspended_calls = 0\ncalls = 1\nqueue_timeout = \"1m\"",
    );
    let first = server.start_call_with_progress("one_wait_for_gate", json!({}));
    server.notification("notifications/progress");
    let ids: Vec<u64> = (0..20)
        .map(|_| server.start_call("two_count", json!({})))
        .collect();
    folder.open_gate();
    server.finish_call(first);
    for id in ids {
        assert!(server.finish_call(id).get("isError").is_none());
    }
}

#[test]
fn the_stack_of_guests_can_be_set() {
    let folder = Folder::with("hostile.wasm", hostile());
    let deep = json!({"n": 2000});
    let mut server = StdioServer::start_with_config(&folder, "[server]\nstack_size = \"64KiB\"");
    let (kind, text) = server.failure("recurse_to", deep.clone());
    assert_eq!(kind, "stack");
    assert_eq!(
        text,
        "The tool overflowed its stack of 64.0 KiB (to allow more, raise server.stack_size, which applies to all \
         plugins)."
    );
    assert_eq!(server.text("count", json!({})), "1");
    drop(server);
    let mut server = StdioServer::start_with_config(&folder, "[server]\nstack_size = \"2MiB\"");
    server.text("recurse_to", deep);
}

#[test]
fn a_ceiling_wins_over_a_grant_and_says_so() {
    let folder = Folder::with("hostile.wasm", hostile());
    folder.put(
        "hostile.toml",
        "[limits]\nfuel = 5_000_000\ntimeout = \"1h\"",
    );
    let mut server = StdioServer::start_with_config(&folder, "[ceilings]\nfuel = 1_000_000");
    let line = server.log.wait_for("fuel");
    assert!(
        line.contains(
            "hostile.toml: limits.fuel = 5000000 was lowered to the server's ceiling, 1000000"
        ),
        "{line}"
    );
    server
        .log
        .wait_for("hostile.toml: limits.timeout = 1h was lowered to the server's ceiling, 10m");
    let (_, text) = server.failure("burn", json!({"n": 1_000_000}));
    assert_eq!(
        text,
        "The tool used all of its fuel, 1,000,000 instructions (to allow more, raise limits.fuel)."
    );
    drop(server);
    let outcome = ToolbayCommand::new(&folder).args(["list"]).run();
    assert!(
        outcome
            .stdout
            .contains("    ! hostile.toml: limits.fuel = 5000000 was lowered"),
        "{outcome}"
    );
}

#[test]
fn a_ceiling_wins_over_the_servers_own_limits_and_says_so() {
    let folder = Folder::with("hostile.wasm", hostile());
    let config = "[ceilings]\nmemory = \"16MiB\"\n[limits]\nmemory = \"32MiB\"\nfuel = 100_000_000";
    let mut server = StdioServer::start_with_config(&folder, config);
    server
        .log
        .wait_for("limits.memory = 32.0 MiB was lowered to the server's ceiling, 16.0 MiB");
    assert_eq!(
        server.failure("allocate", json!({"n": 20})),
        (
            "memory".into(),
            "The tool needed more than 16.0 MiB of memory (to allow more, raise limits.memory)."
                .into()
        )
    );
    // The server's own limits are the defaults of every plugin.
    let (_, text) = server.failure("loop_forever", json!({}));
    assert_eq!(
        text,
        "The tool used all of its fuel, 100,000,000 instructions (to allow more, raise limits.fuel)."
    );
}

#[test]
fn a_component_above_a_ceiling_is_refused_with_its_name() {
    let folder = Folder::new();
    let large = [
        (
            "memory",
            TinyComponent::new(&["memory"]).with_core_items("(memory 32)"),
        ),
        (
            "table",
            TinyComponent::new(&["table"]).with_core_items("(table 200 funcref)"),
        ),
        (
            "memories",
            TinyComponent::new(&["memories"]).with_core_items("(memory 1) (memory 1) (memory 1)"),
        ),
        (
            "tables",
            TinyComponent::new(&["tables"]).with_core_items(&"(table 1 funcref)".repeat(17)),
        ),
    ];
    for (id, tiny) in large {
        folder.put(&format!("{id}.wasm"), tiny.build());
    }
    let list = |config: &str| {
        std::fs::write(
            folder.sibling_path("toolbay.toml"),
            format!("{config}\n[compile]\ncache_folder = \"store\""),
        )
        .unwrap();
        ToolbayCommand::new(&folder).args(["list"]).run().stdout
    };
    let roomy = list("");
    let ceilings = "[ceilings]\nmemory = \"1MiB\"\ntable_elements = 100\nmemories = 3";
    let tight = list(ceilings);
    let tightest = list("[ceilings]\ninstances = 1");
    insta::assert_snapshot!(format!(
        "{roomy}\n{ceilings}\n{tight}\ninstances = 1\n{tightest}"
    ));
    // The compile cache is not affected.
    assert_eq!(list(""), roomy);
}

#[test]
fn listing_tools_has_its_own_limits() {
    let folder = Folder::new();
    let spin = "(loop $for-ever (br $for-ever))";
    let schema = format!(
        r#"{{"type":"object","description":"{}"}}"#,
        "x".repeat(2000)
    );
    let refused = [
        ("spins", TinyComponent::new(&["spins"]).before_list(spin)),
        (
            "hoards",
            TinyComponent::new(&["hoards"]).with_core_items("(memory $big 1)").before_list(
                "(loop $more (br_if $more (i32.ne (memory.grow $big (i32.const 16)) (i32.const -1)))) unreachable",
            ),
        ),
        ("crashes", TinyComponent::new(&["crashes"]).before_list("unreachable")),
        ("has-many-tools", TinyComponent::new(&["a", "b", "c", "d"])),
        ("has-large-schemas", TinyComponent::with_tools(vec![TinyTool { input: schema, ..TinyTool::new("large") }])),
    ];
    for (id, tiny) in refused {
        folder.put(&format!("{id}.wasm"), tiny.build());
    }
    folder.put(
        "just-fits.wasm",
        TinyComponent::new(&["e", "f", "g"]).build(),
    );
    let mut said = String::new();
    for describe in [
        "fuel = 1_000_000\ntools = 3\nschemas = \"1KiB\"",
        "fuel = 1_000_000_000_000\ntimeout = \"50ms\"",
    ] {
        std::fs::write(
            folder.sibling_path("toolbay.toml"),
            format!("[describe]\n{describe}"),
        )
        .unwrap();
        let _ = writeln!(
            said,
            "{describe}\n{}",
            ToolbayCommand::new(&folder).args(["list"]).run().stdout
        );
    }
    insta::assert_snapshot!(said);
}

#[test]
fn a_component_above_the_configured_size_is_refused() {
    let folder = Folder::with(
        "a.wasm",
        TinyComponent::new(&["a"])
            .with_text(&"x".repeat(4000))
            .build(),
    );
    folder.put("b.wasm", TinyComponent::new(&["b"]).build());
    let mut server = StdioServer::start_with_config(&folder, "[server]\ncomponent_size = \"4KiB\"");
    let line = server.log.wait_for("refused");
    assert!(
        line.contains(
            "refused: the file is larger than 4.0 KiB (to allow more, raise server.component_size)"
        ),
        "{line}"
    );
    server.wait_until_listed(&["b"]);
    drop(server);
    let mut server = StdioServer::start_with_config(&folder, "[server]\ncomponent_size = \"8KiB\"");
    server.wait_until_listed(&["a", "b"]);
}
