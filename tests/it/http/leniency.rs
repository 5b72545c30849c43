//! Requests of clients that do not follow the specification exactly.

use serde_json::{Value, json};

use crate::support::{Folder, HttpServer, MODERN, ToolbayCommand, hostile, modern, result_text};

fn server() -> HttpServer {
    HttpServer::start(&Folder::with("hostile.wasm", hostile())).wait_until_ready()
}

#[test]
fn the_endpoint_accepts_a_trailing_slash() {
    let server = server();
    let hello = crate::support::initialize("2025-11-25").to_string();
    let usual = [
        ("Content-Type", "application/json"),
        ("Accept", "application/json, text/event-stream"),
    ];
    let response = server.request("POST", "/mcp/", &usual, hello.as_bytes());
    assert_eq!((response.status, response.header("location")), (200, None));
    let session = response.header("mcp-session-id").unwrap().to_owned();
    let id = ("Mcp-Session-Id", session.as_str());
    assert_eq!(
        server
            .get("/mcp/", &[id, ("Accept", "text/event-stream")])
            .status,
        200
    );
    assert_eq!(server.request("DELETE", "/mcp/", &[id], b"").status, 204);
    assert_eq!(server.get("/mcp/x", &[]).status, 404);
}

#[test]
fn the_paths_of_the_disabled_sse_transport_name_its_flag() {
    let server = server();
    for path in ["/sse", "/messages"] {
        let response = server.get(path, &[("Accept", "text/event-stream")]);
        assert_eq!(response.status, 404);
        let text = response.text();
        assert!(text.contains("--sse") && text.contains("/mcp"), "{text}");
    }
}

#[test]
fn a_wrong_path_or_method_is_answered_with_the_right_path() {
    let server = server();
    let list = br#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    let usual = [
        ("Content-Type", "application/json"),
        ("Accept", "application/json, text/event-stream"),
    ];
    // The console is enabled: it has pages at the first two paths.
    for (path, status) in [
        ("/", 405),
        ("/console/plugins", 405),
        ("/metrics", 405),
        ("/healthz", 405),
        ("/readyz", 405),
        ("/mcp//", 404),
        ("//mcp", 404),
        ("/sse", 404),
        ("/sse/", 404),
        ("/messages/", 404),
        ("/v1/mcp", 404),
    ] {
        let response = server.request("POST", path, &usual, list);
        assert_eq!(response.status, status, "{path}");
        assert_eq!(response.header("allow").is_some(), status == 405, "{path}");
        let text = response.text();
        assert!(text.contains(" /mcp\n"), "{path}: {text:?}");
        assert_eq!(
            text.contains("--sse"),
            path.starts_with("/sse") || path.starts_with("/messages"),
            "{path}"
        );
    }
    let response = server.request("PUT", "/mcp", &[], b"");
    assert_eq!(
        (
            response.status,
            response.text().contains("POST requests to /mcp")
        ),
        (405, true)
    );
    let command =
        ToolbayCommand::new(&Folder::new()).args(["serve", "--http", "127.0.0.1:0", "--sse"]);
    let server = HttpServer::run(command);
    for (path, right) in [
        ("/sse/", "served at /sse,"),
        ("/messages/", "served at /messages,"),
        ("/sse", "to /mcp"),
    ] {
        let text = server.request("POST", path, &usual, list).text();
        assert!(text.contains(right), "{path}: {text}");
    }
}

#[test]
fn a_ping_without_meta_is_answered() {
    let server = server();
    let ping = br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    for headers in [
        &[("MCP-Protocol-Version", MODERN)][..],
        &[("MCP-Protocol-Version", MODERN), ("Mcp-Method", "ping")],
    ] {
        let response = server.post(headers, ping);
        assert_eq!(
            (response.status, response.json()["result"].clone()),
            (200, json!({}))
        );
    }
}

#[test]
fn a_client_without_streams_gets_json_unless_a_stream_is_required() {
    let server = server();
    let json = [("Accept", "application/json")];
    let meta = json!({"progressToken": "p", "io.modelcontextprotocol/logLevel": "info"});
    let params = json!({"name": "progress", "arguments": {"n": 3}, "_meta": meta});
    let response = server.post_stateless("tools/call", params, &json);
    assert_eq!(
        (response.status, response.header("content-type")),
        (200, Some("application/json"))
    );
    assert_eq!(result_text(&response.json()["result"]), "3 steps");
    let listening = server.post_stateless(
        "subscriptions/listen",
        json!({"notifications": {"toolsListChanged": true}}),
        &json,
    );
    assert_eq!(listening.status, 406);
    assert!(
        listening.json()["error"]["message"]
            .as_str()
            .unwrap()
            .contains("text/event-stream")
    );
}

#[test]
fn unsupported_encodings_headers_and_methods_have_their_own_status() {
    let server = server();
    let status = |headers: &[(&str, &str)]| {
        server
            .post_stateless("tools/list", json!({}), headers)
            .status
    };
    assert_eq!(status(&[("Content-Encoding", "identity")]), 200);
    for coding in ["gzip", "br", "identity, gzip"] {
        assert_eq!(status(&[("Content-Encoding", coding)]), 415, "{coding}");
    }
    let list = modern(json!(1), "tools/list", json!({})).to_string();
    let version = ("MCP-Protocol-Version", MODERN);
    let method = ("Mcp-Method", "tools/list");
    assert_eq!(
        server
            .post(
                &[version, method, ("MCP-Protocol-Version", "2025-11-25")],
                list.as_bytes()
            )
            .status,
        400
    );
    let session = server.start_session("2025-11-25");
    let ping = br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let id = ("Mcp-Session-Id", session.id.as_str());
    assert_eq!(server.post(&[id, id], ping).status, 200, "the same twice");
    assert_eq!(
        server.post(&[id, ("Mcp-Session-Id", "other")], ping).status,
        400
    );
    for method in ["GET", "DELETE"] {
        let refused = server.request(
            method,
            "/mcp",
            &[version, ("Accept", "text/event-stream")],
            b"",
        );
        assert_eq!(
            (refused.status, refused.header("allow")),
            (405, Some("POST")),
            "{method}"
        );
    }
}

#[test]
fn members_that_are_null_or_an_empty_list_are_absent() {
    let server = server();
    let session = server.start_session("2025-11-25");
    let post = |text: String| {
        server
            .post(&session.headers(), text.as_bytes())
            .response_message()
    };
    for params in [
        "null",
        "[]",
        "[ ]",
        r#"{"_meta": null}"#,
        r#"{"cursor": null}"#,
    ] {
        let answer = post(format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{params}}}"#
        ));
        assert!(answer["result"]["tools"].is_array(), "{params}: {answer}");
    }
    for arguments in ["null", "[]", "{}"] {
        for meta in [
            "null",
            "[]",
            "{}",
            r#"{"traceparent": 7}"#,
            r#"{"traceparent": "x", "tracestate": []}"#,
        ] {
            let params = format!(r#"{{"name":"progress","arguments":{arguments},"_meta":{meta}}}"#);
            let answer = post(format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#
            ));
            assert!(answer.get("result").is_some(), "{params}: {answer}");
        }
    }
    let strange = post(
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","_meta":[1]}}"#
            .into(),
    );
    assert_eq!(strange["error"]["code"], -32602, "{strange}");
    for method in ["tools/list", "ping"] {
        let text =
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{"_meta":[1]}}}}"#);
        let expected = json!({"code": -32602, "message": "Invalid params: _meta must be an object, not a list"});
        assert_eq!(post(text)["error"], expected, "{method}");
    }
    let ping = br#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":[1]}}"#;
    let stateless = server
        .post(
            &[("MCP-Protocol-Version", MODERN), ("Mcp-Method", "ping")],
            ping,
        )
        .json();
    assert_eq!(stateless["error"]["code"], -32602, "{stateless}");
    for capabilities in ["null", "[]"] {
        let params = format!(
            r#"{{"protocolVersion":"2025-11-25","capabilities":{capabilities},"clientInfo":null}}"#
        );
        let hello = format!(
            "\u{feff}{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{params}}}"
        );
        let answer: Value = server.post(&[], hello.as_bytes()).response_message();
        assert_eq!(
            answer["result"]["protocolVersion"], "2025-11-25",
            "{answer}"
        );
    }
}

#[test]
fn the_error_of_a_body_that_is_not_json_has_its_id_and_the_position() {
    let server = server();
    let session = server.start_session("2025-11-25");
    let body = br#"{"method":"tools/call","params":{"name":"echo","arguments":{"text":NaN}},"jsonrpc":"2.0","id":7}"#;
    let response = server.post(&session.headers(), body);
    assert_eq!(response.status, 400);
    let answer = response.json();
    assert_eq!(
        (answer["id"].clone(), answer["error"]["code"].clone()),
        (json!(7), json!(-32700)),
        "{answer}"
    );
    let said = answer["error"]["message"].as_str().unwrap();
    assert!(
        said.contains("line 1 column 68") && said.contains("JSON has no number NaN"),
        "{said}"
    );
}

#[test]
fn unreadable_arguments_are_a_tool_error_that_names_them() {
    let server = server();
    let session = server.start_session("2025-11-25");
    let deep = format!("{}{}", "[".repeat(5_000), "]".repeat(5_000));
    for (arguments, pointer) in [
        (r#"{"text": "a\ud800b"}"#.to_owned(), "/text"),
        (r#"{"text": 1e999}"#.to_owned(), "/text"),
        (
            r#"{"text": "x", "more": [{"deep": -1e400}]}"#.to_owned(),
            "/more/0/deep",
        ),
        (format!(r#"{{"text": {deep}}}"#), "/text"),
        (r#"{"text": "x", "\ud800": 1}"#.to_owned(), "/\\ud800"),
        (
            r#"{"text": "x", "more": [{"a\udc00": 1}]}"#.to_owned(),
            "/more/0/a\\udc00",
        ),
    ] {
        let params = format!(r#"{{"name":"echo","arguments":{arguments}}}"#);
        let message =
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#);
        let answer = server
            .post(&session.headers(), message.as_bytes())
            .response_message();
        assert_eq!(answer["result"]["isError"], true, "{answer}");
        assert_eq!(
            answer["result"]["_meta"]["dev.toolbay/error"], "invalid-arguments",
            "{answer}"
        );
        assert!(
            result_text(&answer["result"]).contains(&format!("\n{pointer}: ")),
            "{answer}"
        );
        // A tool that does not exist stays unknown.
        let unknown = server
            .post(
                &session.headers(),
                message.replace("echo", "nothing").as_bytes(),
            )
            .response_message();
        assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
    }
}

#[test]
fn meta_must_be_an_object_in_every_method() {
    let server = server();
    let session = server.start_session("2025-11-25");
    let methods = [
        ("tools/list", json!({})),
        ("prompts/list", json!({})),
        ("resources/list", json!({})),
        ("resources/templates/list", json!({})),
        ("skills/list", json!({})),
        ("logging/setLevel", json!({"level": "error"})),
        (
            "tools/call",
            json!({"name": "echo", "arguments": {"text": "hi"}}),
        ),
    ];
    for (method, mut params) in methods {
        for (meta, is_read) in [
            (json!(null), true),
            (json!([]), true),
            (json!({"a/b": 1}), true),
            (json!([1]), false),
            (json!("x"), false),
            (json!(false), false),
        ] {
            params["_meta"] = meta.clone();
            let answer = session.request(method, params.clone()).response_message();
            assert_eq!(
                answer.get("result").is_some(),
                is_read,
                "{method} {meta}: {answer}"
            );
            assert_eq!(
                answer["error"]["code"] == -32602,
                !is_read,
                "{method} {meta}: {answer}"
            );
        }
    }
    // The `_meta` that states the revision and capabilities of a request must be an object, too.
    let stated = json!(["2026-07-28", {}, "io.modelcontextprotocol/protocolVersion"]);
    let body =
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": stated}})
            .to_string();
    let headers = [
        ("MCP-Protocol-Version", "2026-07-28"),
        ("Mcp-Method", "tools/list"),
    ];
    assert_eq!(server.post(&headers, body.as_bytes()).status, 400);
}

#[test]
fn an_error_without_a_request_has_a_null_id_only_in_older_revisions() {
    let server = server();
    for (revision, has_id) in [
        ("2025-03-26", true),
        ("2025-06-18", true),
        ("2025-11-25", false),
        ("2026-07-28", false),
    ] {
        let version = ("MCP-Protocol-Version", revision);
        let refused = [
            server.post(&[version], b"{"),
            server.post(&[version], b"7"),
            server.post(&[version, ("Accept", "text/html")], b"{}"),
            server.post(&[version, ("Content-Type", "text/plain")], b"{}"),
            server.post(&[version, ("Content-Encoding", "gzip")], b"{}"),
            server.post(&[version], &vec![b' '; 5 << 20]),
        ];
        for refused in refused {
            assert!(refused.status >= 400);
            let error = refused.json();
            assert!(error["error"]["message"].is_string(), "{error}");
            assert_eq!(
                error.get("id"),
                has_id.then_some(&serde_json::Value::Null),
                "{revision}: {error}"
            );
        }
    }
}

#[test]
fn a_stream_begins_with_a_comment() {
    let server =
        HttpServer::start_with_config(&Folder::new(), "[http]\nstream_keep_alive = \"1h\"")
            .wait_until_ready();
    // There is no other event to send.
    assert_eq!(
        server
            .start_session("2025-11-25")
            .open_stream()
            .next_event(),
        Some((String::new(), String::new())),
        "a comment"
    );
}
