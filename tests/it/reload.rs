//! Plugins that change while they serve.

use serde_json::json;

use crate::support::{Folder, LIST_CHANGED, Server, Tiny, Tool, hostile_version, text};

#[test]
fn calls_in_flight_finish_on_the_version_they_began_with() {
    let folder = Folder::with("hostile.wasm", hostile_version(1));
    let grant =
        |version: u32| format!("{}[limits]\nconcurrency = 64\n[config]\nversion = \"grant {version}\"", folder.gate());
    folder.put("hostile.toml", grant(1));
    let mut server = Server::configured(&folder, "[server]\nclient_calls = 64");
    let ids: Vec<u64> = (0..50).map(|_| server.begin_with_progress("wait_for_gate", json!({}))).collect();
    for _ in &ids {
        server.notification("notifications/progress");
    }
    folder.put("hostile.toml", grant(2));
    folder.put("hostile.wasm", hostile_version(2));
    server.answers_in_the_end("version", "build-marker-0002", &["build-marker-0001"]);
    server.answers_in_the_end_with("config", json!({"text": "version"}), "grant 2", &["grant 1"]);
    folder.open_gate();
    for id in ids {
        assert_eq!(text(&server.finish(id)), "build-marker-0001 grant 1");
    }
    assert_eq!(server.text("wait_for_gate", json!({})), "build-marker-0002 grant 2");
}

#[test]
fn calls_in_flight_finish_even_when_their_plugin_is_deleted() {
    let folder = Folder::with("hostile.wasm", hostile_version(1));
    folder.put("hostile.toml", folder.gate());
    let mut server = Server::start(&folder);
    let id = server.begin_with_progress("wait_for_gate", json!({}));
    server.notification("notifications/progress");
    folder.remove("hostile.wasm");
    server.wait_until_listed(&[]);
    folder.open_gate();
    assert_eq!(text(&server.finish(id)), "build-marker-0001 ");
    assert_eq!(server.error("tools/call", json!({"name": "count"}))["message"], "Unknown tool: count");
}

#[test]
fn a_rebuilt_plugin_with_the_same_tools_swaps_silently() {
    let folder = Folder::with("a.wasm", Tiny::new(&["a"]).answer("one").build());
    let mut server = Server::start(&folder);
    server.wait_until_listed(&["a"]);
    folder.put("a.wasm", Tiny::new(&["a"]).answer("two").build());
    server.answers_in_the_end("a", "two", &["one"]);
    // A notification arrives after all earlier ones.
    folder.put("b.wasm", Tiny::new(&["b"]).build());
    assert_eq!(server.wait_until_listed(&["a", "b"]), 1);
}

#[test]
fn a_change_to_any_part_of_a_definition_is_notified() {
    let folder = Folder::with("a.wasm", Tiny::new(&["a"]).build());
    let mut server = Server::start(&folder);
    server.wait_until_listed(&["a"]);
    let plain = Tool::new("a");
    let changes = [
        Tool { title: Some("A".into()), ..plain.clone() },
        Tool { description: None, ..plain.clone() },
        Tool { input: r#"{"type":"object","properties":{}}"#.into(), ..plain.clone() },
        Tool { output: Some("{}".into()), ..plain.clone() },
        Tool { read_only: Some(false), ..plain.clone() },
        Tool { icon: Some("data:image/png,".into()), ..plain.clone() },
        Tool { meta: Some(r#"{"a":1}"#.into()), ..plain.clone() },
        plain,
    ];
    for tool in changes {
        folder.put("a.wasm", Tiny::of(vec![tool]).build());
        server.notification(LIST_CHANGED);
    }
}

#[test]
fn a_broken_overwrite_keeps_the_last_good_version() {
    let folder = Folder::with("a.wasm", Tiny::new(&["a"]).answer("one").build());
    let mut server = Server::start(&folder);
    server.wait_until_listed(&["a"]);
    folder.put("a.wasm", "no component at all");
    let line = server.log.wait_for("refused");
    assert!(line.contains("WARN refused; the previous version stays in service: not a WebAssembly file"), "{line}");
    assert_eq!(server.names(), ["a"]);
    assert_eq!(server.text("a", json!({})), "one");
    // A file that works again is loaded.
    folder.put("a.wasm", Tiny::new(&["a", "b"]).answer("two").build());
    assert_eq!(server.wait_until_listed(&["a", "b"]), 1, "the broken one was no change of the list");
    assert_eq!(server.text("a", json!({})), "two");
}

#[test]
fn the_same_bytes_restored_after_a_broken_overwrite_serve_again() {
    let good = Tiny::new(&["a"]).answer("one").build();
    let folder = Folder::with("a.wasm", &good);
    let mut server = Server::configured(&folder, "log = \"toolbay=debug\"");
    server.wait_until_listed(&["a"]);
    folder.put("a.wasm", "no component at all");
    server.log.wait_for("refused");
    folder.put("a.wasm", &good);
    server.log.wait_for_count("tools=1", 2);
    assert_eq!(server.text("a", json!({})), "one");
}

#[test]
fn a_broken_grant_keeps_the_last_good_version() {
    let folder = Folder::with("a.wasm", Tiny::new(&["a"]).build());
    let mut server = Server::start(&folder);
    server.wait_until_listed(&["a"]);
    folder.put("a.toml", "prefx = \"p\"");
    let line = server.log.wait_for("refused");
    assert!(line.contains("a.toml:1:1: unknown key `prefx`; did you mean `prefix`?"), "{line}");
    assert_eq!(server.names(), ["a"]);
    folder.put("a.toml", "prefix = \"p\"");
    server.wait_until_listed(&["p_a"]);
}

#[test]
fn adding_changing_or_deleting_a_grant_reloads_the_plugin() {
    let folder = Folder::with("hostile.wasm", hostile_version(1));
    folder.put("hostile.toml", "prefix = \"x\"");
    folder.put("a.wasm", Tiny::new(&["a"]).build());
    let mut server = Server::start(&folder);
    let burn = json!({"n": 1_000_000});
    assert!(server.call("x_burn", burn.clone()).get("isError").is_none());
    // A grant that changes only limits does not change the list, but the calls.
    folder.put("hostile.toml", "prefix = \"x\"\n[limits]\nfuel = 100_000");
    server.until("the grant holds", |server| server.call("x_burn", burn.clone())["isError"] == true);
    assert_eq!(server.failure("x_burn", burn.clone()).0, "fuel");
    // The list of another plugin is not affected.
    folder.put("a.toml", "prefix = \"p\"");
    server.wait_for_tool("p_a");
    // Changed in place, as some editors do.
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
    let folder = Folder::with("a.wasm", Tiny::new(&["a"]).answer("0").build());
    let mut server = Server::start(&folder);
    server.wait_until_listed(&["a"]);
    let answers: Vec<String> = (1..=100).map(|n: u32| n.to_string()).collect();
    for answer in &answers {
        folder.put("a.wasm", Tiny::new(&["a"]).answer(answer).build());
    }
    let allowed: Vec<&str> = std::iter::once("0").chain(answers.iter().map(String::as_str)).collect();
    server.answers_in_the_end("a", "100", &allowed);
    folder.put("b.wasm", Tiny::new(&["b"]).build());
    assert_eq!(server.wait_until_listed(&["a", "b"]), 1);
}

#[test]
fn a_grant_that_is_a_link_to_nowhere_is_not_taken_for_none() {
    let folder = Folder::with("a.wasm", Tiny::new(&["a", "b"]).build());
    folder.put("a.toml", "[tools.b]\nhidden = true");
    let mut server = Server::start(&folder);
    server.wait_until_listed(&["a"]);
    // What the link should lead to comes later, or never: until then, what was known of the plugin counts.
    std::fs::remove_file(folder.path("a.toml")).unwrap();
    std::os::unix::fs::symlink("nowhere.toml", folder.path("a.toml")).unwrap();
    server.log.wait_for("a.toml is a link to a file that does not exist");
    folder.put("c.wasm", Tiny::new(&["c"]).build());
    server.wait_until_listed(&["a", "c"]);
    folder.put("nowhere.toml", "[tools.a]\nhidden = true");
    server.wait_until_listed(&["b", "c"]);
    // A server that starts has no version before.
    folder.remove("nowhere.toml");
    let mut server = Server::start(&folder);
    server.wait_until_listed(&["c"]);
}
