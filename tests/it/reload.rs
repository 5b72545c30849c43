//! Plugins that change while they serve.

use serde_json::json;

use crate::support::{
    Folder, LIST_CHANGED, StdioServer, TinyComponent, TinyTool, hostile_version, result_text,
};

#[test]
fn calls_in_flight_finish_on_the_version_they_began_with() {
    let folder = Folder::with("hostile.wasm", hostile_version(1));
    let grant = |version: u32| {
        format!(
            "{}[limits]\nconcurrency = 64\n[config]\nversion = \"grant {version}\"",
            folder.create_gate()
        )
    };
    folder.put("hostile.toml", grant(1));
    let mut server = StdioServer::start_with_config(&folder, "[server]\ncalls_per_caller = 64");
    let ids: Vec<u64> = (0..50)
        .map(|_| server.start_call_with_progress("wait_for_gate", json!({})))
        .collect();
    for _ in &ids {
        server.notification("notifications/progress");
    }
    folder.put("hostile.toml", grant(2));
    folder.put("hostile.wasm", hostile_version(2));
    server.wait_for_text("version", "build-marker-0002", &["build-marker-0001"]);
    server.wait_for_text_with_arguments(
        "config",
        json!({"text": "version"}),
        "grant 2",
        &["grant 1"],
    );
    folder.open_gate();
    for id in ids {
        assert_eq!(
            result_text(&server.finish_call(id)),
            "build-marker-0001 grant 1"
        );
    }
    assert_eq!(
        server.text("wait_for_gate", json!({})),
        "build-marker-0002 grant 2"
    );
}

#[test]
fn calls_in_flight_finish_even_when_their_plugin_is_deleted() {
    let folder = Folder::with("hostile.wasm", hostile_version(1));
    folder.put("hostile.toml", folder.create_gate());
    let mut server = StdioServer::start(&folder);
    let id = server.start_call_with_progress("wait_for_gate", json!({}));
    server.notification("notifications/progress");
    folder.remove("hostile.wasm");
    server.wait_until_listed(&[]);
    folder.open_gate();
    assert_eq!(result_text(&server.finish_call(id)), "build-marker-0001 ");
    assert_eq!(
        server.error("tools/call", json!({"name": "count"}))["message"],
        "Unknown tool: count"
    );
}

#[test]
fn a_rebuilt_plugin_with_the_same_tools_swaps_silently() {
    let folder = Folder::with(
        "a.wasm",
        TinyComponent::new(&["a"]).with_text("one").build(),
    );
    let mut server = StdioServer::start(&folder);
    server.wait_until_listed(&["a"]);
    folder.put(
        "a.wasm",
        TinyComponent::new(&["a"]).with_text("two").build(),
    );
    server.wait_for_text("a", "two", &["one"]);
    // Notifications arrive in order, so this one arrives after any earlier one.
    folder.put("b.wasm", TinyComponent::new(&["b"]).build());
    assert_eq!(server.wait_until_listed(&["a", "b"]), 1);
}

#[test]
fn a_change_to_any_part_of_a_definition_is_notified() {
    let folder = Folder::with("a.wasm", TinyComponent::new(&["a"]).build());
    let mut server = StdioServer::start(&folder);
    server.wait_until_listed(&["a"]);
    let plain = TinyTool::new("a");
    let changes = [
        TinyTool {
            title: Some("A".into()),
            ..plain.clone()
        },
        TinyTool {
            description: None,
            ..plain.clone()
        },
        TinyTool {
            input: r#"{"type":"object","properties":{}}"#.into(),
            ..plain.clone()
        },
        TinyTool {
            output: Some("{}".into()),
            ..plain.clone()
        },
        TinyTool {
            read_only: Some(false),
            ..plain.clone()
        },
        TinyTool {
            icon: Some("data:image/png,".into()),
            ..plain.clone()
        },
        TinyTool {
            meta: Some(r#"{"a":1}"#.into()),
            ..plain.clone()
        },
        plain,
    ];
    for tool in changes {
        folder.put("a.wasm", TinyComponent::with_tools(vec![tool]).build());
        server.notification(LIST_CHANGED);
    }
}

#[test]
fn a_broken_overwrite_keeps_the_last_good_version() {
    let folder = Folder::with(
        "a.wasm",
        TinyComponent::new(&["a"]).with_text("one").build(),
    );
    let mut server = StdioServer::start(&folder);
    server.wait_until_listed(&["a"]);
    folder.put("a.wasm", "no component at all");
    let line = server.log.wait_for("refused");
    assert!(
        line.contains(
            "WARN refused; the previous version stays in service: not a WebAssembly file"
        ),
        "{line}"
    );
    assert_eq!(server.tool_names(), ["a"]);
    assert_eq!(server.text("a", json!({})), "one");
    // A valid file is loaded.
    folder.put(
        "a.wasm",
        TinyComponent::new(&["a", "b"]).with_text("two").build(),
    );
    assert_eq!(
        server.wait_until_listed(&["a", "b"]),
        1,
        "the broken one was no change of the list"
    );
    assert_eq!(server.text("a", json!({})), "two");
}

#[test]
fn the_same_bytes_restored_after_a_broken_overwrite_serve_again() {
    let good = TinyComponent::new(&["a"]).with_text("one").build();
    let folder = Folder::with("a.wasm", &good);
    let mut server = StdioServer::start_with_config(&folder, "log = \"toolbay=debug\"");
    server.wait_until_listed(&["a"]);
    folder.put("a.wasm", "no component at all");
    server.log.wait_for("refused");
    folder.put("a.wasm", &good);
    server.log.wait_for_count("tools=1", 2);
    assert_eq!(server.text("a", json!({})), "one");
}

#[test]
fn a_broken_grant_keeps_the_last_good_version() {
    let folder = Folder::with("a.wasm", TinyComponent::new(&["a"]).build());
    let mut server = StdioServer::start(&folder);
    server.wait_until_listed(&["a"]);
    folder.put("a.toml", "prefx = \"p\"");
    let line = server.log.wait_for("refused");
    assert!(
        line.contains("a.toml:1:1: unknown key `prefx`; did you mean `prefix`?"),
        "{line}"
    );
    assert_eq!(server.tool_names(), ["a"]);
    folder.put("a.toml", "prefix = \"p\"");
    server.wait_until_listed(&["p_a"]);
}

#[test]
fn adding_changing_or_deleting_a_grant_reloads_the_plugin() {
    let folder = Folder::with("hostile.wasm", hostile_version(1));
    folder.put("hostile.toml", "prefix = \"x\"");
    folder.put("a.wasm", TinyComponent::new(&["a"]).build());
    let mut server = StdioServer::start(&folder);
    let burn = json!({"n": 1_000_000});
    assert!(server.call("x_burn", burn.clone()).get("isError").is_none());
    // A grant that changes only limits affects calls, and not the list.
    folder.put("hostile.toml", "prefix = \"x\"\n[limits]\nfuel = 100_000");
    server.wait_until("the grant holds", |server| {
        server.call("x_burn", burn.clone())["isError"] == true
    });
    assert_eq!(server.failure("x_burn", burn.clone()).0, "fuel");
    // The list of another plugin is not affected.
    folder.put("a.toml", "prefix = \"p\"");
    server.wait_for_tool("p_a");
    // The file is changed in place, as some editors do.
    folder.overwrite("a.toml", "prefix = \"q\"");
    server.wait_for_tool("q_a");
    folder.remove("a.toml");
    server.wait_for_tool("a");
    folder.remove("hostile.toml");
    server.wait_for_tool("burn");
    assert!(server.call("burn", burn).get("isError").is_none());
}

#[test]
fn a_hundred_rebuilds_in_a_row_end_with_the_last() {
    let folder = Folder::with("a.wasm", TinyComponent::new(&["a"]).with_text("0").build());
    let mut server = StdioServer::start(&folder);
    server.wait_until_listed(&["a"]);
    let answers: Vec<String> = (1..=100).map(|n: u32| n.to_string()).collect();
    for answer in &answers {
        folder.put(
            "a.wasm",
            TinyComponent::new(&["a"]).with_text(answer).build(),
        );
    }
    let allowed: Vec<&str> = std::iter::once("0")
        .chain(answers.iter().map(String::as_str))
        .collect();
    server.wait_for_text("a", "100", &allowed);
    folder.put("b.wasm", TinyComponent::new(&["b"]).build());
    assert_eq!(server.wait_until_listed(&["a", "b"]), 1);
}

#[test]
fn a_grant_that_is_a_dangling_link_is_not_treated_as_absent() {
    let folder = Folder::with("a.wasm", TinyComponent::new(&["a", "b"]).build());
    folder.put("a.toml", "[tools.b]\ndisabled = true");
    let mut server = StdioServer::start(&folder);
    server.wait_until_listed(&["a"]);
    // The target of the link is created later, or never. Until then, the previous version stays in
    // service.
    std::fs::remove_file(folder.plugin_path("a.toml")).unwrap();
    std::os::unix::fs::symlink("nowhere.toml", folder.plugin_path("a.toml")).unwrap();
    server
        .log
        .wait_for("a.toml is a link to a file that does not exist");
    folder.put("c.wasm", TinyComponent::new(&["c"]).build());
    server.wait_until_listed(&["a", "c"]);
    folder.put("nowhere.toml", "[tools.a]\ndisabled = true");
    server.wait_until_listed(&["b", "c"]);
    // A server that starts has no previous version.
    folder.remove("nowhere.toml");
    let mut server = StdioServer::start(&folder);
    server.wait_until_listed(&["c"]);
}
