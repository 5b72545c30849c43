//! Components that offer their tools through the interface of ACT.

use serde_json::{Value, json};

use crate::support::{
    Folder, StdioServer, ToolbayCommand, error_kind_and_text, own_server, result_text,
};

/// The guests for ACT 0.1 and 0.2.
const GUESTS: [&str; 2] = ["act1", "act"];

fn start_with_guest(name: &str, grant: &str) -> StdioServer {
    let folder = Folder::with(&format!("{name}.wasm"), own_server(name));
    folder.put(&format!("{name}.toml"), grant);
    let mut server = StdioServer::start(&folder);
    server.wait_for_tool("greet");
    server
}

/// Returns the guest with one text replaced by another of the same length.
fn with_replaced_text(from: &str, to: &str) -> Vec<u8> {
    assert_eq!(from.len(), to.len());
    let mut component = own_server("act");
    let at = component
        .windows(from.len())
        .position(|window| window == from.as_bytes())
        .expect("the guest has the text");
    component
        .get_mut(at..at + to.len())
        .unwrap()
        .copy_from_slice(to.as_bytes());
    component
}

#[test]
fn the_tools_of_both_act_versions_are_listed() {
    for name in GUESTS {
        let mut server = start_with_guest(name, "");
        let tools = server.tools();
        assert_eq!(tools.len(), 16, "{name}");
        let greet = tools.iter().find(|tool| tool["name"] == "greet").unwrap();
        assert_eq!(
            greet["description"],
            "Greets somebody.\n\nUse it when somebody comes in."
        );
        assert_eq!(greet["inputSchema"]["required"], json!(["name"]));
        assert_eq!(
            greet["annotations"],
            json!({"readOnlyHint": true, "idempotentHint": true})
        );
        assert_eq!(greet.get("outputSchema"), None);
        assert_eq!(server.text("greet", json!({"name": "Zoë"})), "Hello, Zoë!");
        let (kind, said) = server.failure("greet", json!({"name": 1}));
        assert_eq!(
            kind, "invalid-arguments",
            "the schema is checked before the guest is entered: {said}"
        );
    }
}

#[test]
fn arguments_are_deterministic_cbor() {
    let mut server = start_with_guest("act", "");
    let arguments =
        json!({"zz": [1, -1, 1.5, null], "a": {"$bytes": "AQI="}, "b": {"long": "é", "$$x": true}});
    assert_eq!(
        server.text("arguments", arguments),
        "a361614201026162a2622478f5646c6f6e6762c3a9627a7a840120f93e00f6",
        "maps are in the order of their keys' bytes, and all heads are the shortest"
    );
    assert_eq!(server.text("arguments", json!({})), "a0");
    let (kind, said) = server.failure("arguments", json!({"a": {"$bytes": "?"}}));
    assert_eq!(kind, "invalid-arguments");
    assert!(said.contains("base64"), "{said}");
}

#[test]
fn parts_become_blocks_by_their_media_types() {
    for name in GUESTS {
        let mut server = start_with_guest(name, "");
        let structured = server.call("structured", json!({"n": 7}));
        let expected = json!({"bytes": {"$bytes": "AQIDBA=="}, "given": {"n": 7}});
        assert_eq!(structured["structuredContent"], expected);
        assert_eq!(
            serde_json::from_str::<Value>(&result_text(&structured)).unwrap(),
            expected
        );
        let object = server.call("json", json!({}));
        assert_eq!(object["structuredContent"], json!({"a": [1, null]}));
        let image = server.call("image", json!({}));
        assert_eq!(
            image["content"],
            json!([{"type": "image", "data": "iVA=", "mimeType": "image/png"}])
        );
        let opaque = server.call("opaque", json!({}));
        let resource = json!({"uri": "act:content/0", "blob": "/wA="});
        assert_eq!(
            opaque["content"],
            json!([{"type": "resource", "resource": resource}])
        );
        let mixed = server.call("mixed", json!({}));
        assert_eq!(
            mixed["content"],
            json!([
                {"type": "text", "text": r#"{"a":1}"#},
                {"type": "text", "text": "*b*"},
                {"type": "audio", "data": "AQ==", "mimeType": "audio/wav"},
                {"type": "resource", "resource": {"uri": "act:content/3", "mimeType": "application/xml", "text": "<c/>"}},
            ])
        );
        assert_eq!(mixed.get("structuredContent"), None);
    }
}

#[test]
fn a_stream_is_read_to_its_end_and_reports_progress() {
    for name in GUESTS {
        let mut server = start_with_guest(name, "");
        let id = server.start_call_with_progress("stream", json!({}));
        let result = server.finish_call(id);
        let parts: Vec<&str> = result["content"]
            .as_array()
            .unwrap()
            .iter()
            .map(|block| block["text"].as_str().unwrap())
            .collect();
        assert_eq!(parts, ["part 1", "part 2", "part 3"]);
        let reports = server.take_notifications("notifications/progress");
        let steps: Vec<f64> = reports
            .iter()
            .map(|report| report["progress"].as_f64().unwrap())
            .collect();
        assert_eq!(steps, [1.0, 2.0, 3.0], "{reports:?}");
        assert_eq!(reports[0]["total"], 3.0);
    }
}

#[test]
fn an_error_ends_a_result_and_has_a_kind_and_a_message() {
    for name in GUESTS {
        let mut server = start_with_guest(name, "[limits]\ntimeout = \"1h\"");
        let mut fail = |kind: &str| server.failure("fail", json!({"kind": kind}));
        assert_eq!(
            fail("std:not-found"),
            (
                "none".into(),
                "half\nIt is not there. (std:not-found)".into()
            )
        );
        assert_eq!(
            fail("acme:own"),
            ("none".into(), "half\nIt is not there. (acme:own)".into())
        );
        let (kind, said) = fail("std:invalid-args");
        assert_eq!(kind, "invalid-arguments");
        assert!(said.contains("It is not there."), "{said}");
        let (_, said) = fail("std:session-not-found");
        assert!(
            said.contains("the server opens no sessions of act:sessions"),
            "{said}"
        );
    }
}

#[test]
fn unreadable_results_and_endless_streams_are_failures() {
    for name in GUESTS {
        let mut server = start_with_guest(
            name,
            "[limits]\ntimeout = \"3s\"\ntransfer = \"4MiB\"\noversize = \"error\"",
        );
        let cases = [
            (
                "malformed",
                "invalid-output",
                "content[0] is \"application/cbor\" and ends in the middle of an item",
            ),
            (
                "deep",
                "invalid-output",
                "is nested more than 64 levels deep",
            ),
            ("wide", "output", "limits.output"),
            ("endless", "output", "limits.transfer"),
            (
                "unfinished",
                "trap",
                "it ended without closing the stream of its result",
            ),
            ("trap-late", "trap", ""),
            ("silent", "deadline", "limits.timeout"),
        ];
        for (tool, kind, part) in cases {
            let (found, said) = server.failure(tool, json!({}));
            assert_eq!(found, kind, "{name} {tool}: {said}");
            assert!(said.contains(part), "{name} {tool}: {said}");
        }
        // Each of these calls had its own store, so later calls are unaffected.
        assert_eq!(server.text("greet", json!({"name": "Ada"})), "Hello, Ada!");
    }
}

#[test]
fn an_endless_stream_ends_at_the_limits_of_its_call() {
    for (limits, kind) in [
        ("memory = \"8MiB\"\ntransfer = \"128MiB\"", "memory"),
        ("fuel = 20000000", "fuel"),
    ] {
        let mut server = start_with_guest("act", &format!("[limits]\n{limits}"));
        let (found, said) = server.failure("endless", json!({}));
        assert_eq!(found, kind, "{said}");
        assert_eq!(server.text("greet", json!({"name": "Ada"})), "Hello, Ada!");
    }
}

#[test]
fn a_cancelled_stream_frees_its_slot() {
    let folder = Folder::with("act.wasm", own_server("act"));
    folder.put("act.toml", "[limits]\ntimeout = \"1h\"");
    folder.write_config("[server]\ncalls = 1");
    let mut server = StdioServer::start(&folder);
    server.wait_for_tool("silent");
    let id = server.start_call("silent", json!({}));
    server.notify("notifications/cancelled", json!({"requestId": id}));
    assert_eq!(server.text("greet", json!({"name": "Ada"})), "Hello, Ada!");
}

#[test]
fn check_names_the_interface_and_the_unused_parts() {
    for (name, version) in [("act1", "0.1.0"), ("act", "0.2.0")] {
        let folder = Folder::with(&format!("{name}.wasm"), own_server(name));
        let checked = ToolbayCommand::new(&folder)
            .args(["check", &format!("plugins/{name}.wasm")])
            .run();
        let form = format!("it exports act:tools/tool-provider@{version}, which lists its tools");
        let remark =
            "part of its metadata is not used: std:destructive ends in the middle of an item";
        let time = "it declares a timeout of 1h (std:timeout-ms), but limits.timeout applies";
        let types = "uses types of other interfaces (always allowed)";
        for part in [form.as_str(), remark, time, types] {
            assert!(checked.stdout.contains(part), "{part}: {checked}");
        }
        let sessions = "it also exports act:sessions/session-provider@0.2.0, which is not offered: its tools are";
        assert_eq!(
            checked.stdout.contains(sessions),
            name == "act",
            "{checked}"
        );
    }
}

#[test]
fn a_failing_list_and_a_schema_that_is_not_json_are_refused() {
    let folder = Folder::with(
        "list.wasm",
        with_replaced_text("list-marker-0001", "list-marker-0002"),
    );
    folder.put(
        "schema.wasm",
        with_replaced_text(
            r#"{"type":"object","description":"schema-marker""#,
            r#"<"type":"object","description":"schema-marker""#,
        ),
    );
    let server = StdioServer::start(&folder);
    server
        .log
        .wait_for("its list-tools failed: the catalogue cannot be reached (acme:offline)");
    server.log.wait_for("its input schema is invalid: not JSON");
}

#[test]
fn a_failure_is_reported_in_every_revision() {
    let mut server = start_with_guest("act", "");
    let result = server.call("fail", json!({"kind": "std:internal"}));
    assert_eq!(result["isError"], true);
    assert_eq!(
        error_kind_and_text(&result).1,
        "half\nIt is not there. (std:internal)"
    );
}
