//! `http.sessions = false`: clients of revisions with sessions, behind a load balancer that sends
//! each request to another server.

use serde_json::{Value, json};

use crate::support::{Folder, HttpResponse, HttpServer, hostile, initialize, result_text};

/// Starts two servers with the same folder.
fn servers() -> [HttpServer; 2] {
    let folder = Folder::with("hostile.wasm", hostile());
    [(); 2].map(|()| {
        HttpServer::start_with_config(&folder, "[http]\nsessions = false").wait_until_ready()
    })
}

fn request(id: u64, method: &str, params: &Value) -> Vec<u8> {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
        .to_string()
        .into_bytes()
}

#[test]
fn without_sessions_each_request_of_an_older_revision_is_independent() {
    let [one, other] = servers();
    for (revision, header) in [
        ("2025-03-26", None),
        ("2025-06-18", Some("2025-06-18")),
        ("2025-11-25", Some("2025-11-25")),
    ] {
        let version: Vec<(&str, &str)> = header
            .into_iter()
            .map(|date| ("MCP-Protocol-Version", date))
            .collect();
        let hello = one.post(&[], initialize(revision).to_string().as_bytes());
        assert_eq!(hello.header("mcp-session-id"), None);
        let hello = hello.response_message();
        assert_eq!(hello["result"]["protocolVersion"], revision);
        let capabilities = &hello["result"]["capabilities"];
        assert_eq!(
            (&capabilities["tools"], capabilities.get("logging")),
            (&json!({}), None),
            "{capabilities}"
        );
        assert_eq!(
            (&capabilities["prompts"], &capabilities["resources"]),
            (&json!({}), &json!({}))
        );

        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string();
        assert_eq!(other.post(&version, ready.as_bytes()).status, 202);
        let listed = one
            .post(&version, &request(2, "tools/list", &json!({})))
            .response_message();
        assert!(!listed["result"]["tools"].as_array().unwrap().is_empty());
        let call = request(
            3,
            "tools/call",
            &json!({"name": "version", "arguments": {}}),
        );
        assert_eq!(
            result_text(&other.post(&version, &call).response_message()["result"]),
            "build-marker-0001"
        );
        // A session id of another server is ignored.
        let known = [
            version.clone(),
            vec![("Mcp-Session-Id", "of-another-server")],
        ]
        .concat();
        assert_eq!(
            result_text(&one.post(&known, &call).response_message()["result"]),
            "build-marker-0001"
        );
        assert_eq!(
            one.post(&version, &request(4, "ping", &json!({})))
                .response_message()["result"],
            json!({})
        );
        for (method, params) in [
            ("logging/setLevel", json!({"level": "debug"})),
            ("resources/subscribe", json!({"uri": "a:b"})),
        ] {
            let refused = one
                .post(&version, &request(5, method, &params))
                .response_message();
            assert_eq!(refused["error"]["code"], -32601, "{refused}");
            assert!(
                refused["error"]["message"]
                    .as_str()
                    .unwrap()
                    .contains("http.sessions"),
                "{refused}"
            );
        }
        for method in ["GET", "DELETE"] {
            let headers = [version.clone(), vec![("Accept", "text/event-stream")]].concat();
            let refused = one.request(method, "/mcp", &headers, b"");
            assert_eq!(
                (refused.status, refused.header("allow")),
                (405, Some("POST")),
                "{method}"
            );
        }
    }
    let unknown = one.post(
        &[
            ("MCP-Protocol-Version", "1999-01-01"),
            ("Mcp-Session-Id", "x"),
        ],
        &request(1, "ping", &json!({})),
    );
    assert_eq!(
        (
            unknown.status,
            unknown.response_message()["error"]["code"].clone()
        ),
        (400, json!(-32022))
    );
}

#[test]
fn without_sessions_a_call_reports_progress_and_ends_when_its_client_disconnects() {
    let folder = Folder::with("hostile.wasm", hostile());
    // The last call starts only when the previous one has ended.
    folder.put(
        "hostile.toml",
        "[limits]\nconcurrency = 1\nfuel = 1_000_000_000_000\ntimeout = \"10m\"",
    );
    let server =
        HttpServer::start_with_config(&folder, "[http]\nsessions = false").wait_until_ready();
    let call = json!({"name": "progress", "arguments": {"n": 3}, "_meta": {"progressToken": "p"}});
    let mut response: HttpResponse = server.post(&[], &request(1, "tools/call", &call));
    assert_eq!(
        response.next_message().unwrap()["method"],
        "notifications/progress"
    );
    assert_eq!(
        result_text(&response.response_message()["result"]),
        "3 steps"
    );
    let call = json!({"name": "loop_forever", "arguments": {}, "_meta": {"progressToken": "p"}});
    let mut response = server.post(&[], &request(1, "tools/call", &call));
    assert_eq!(
        response.next_message().unwrap()["method"],
        "notifications/progress"
    );
    response.close();
    let count = request(2, "tools/call", &json!({"name": "count"}));
    assert_eq!(
        result_text(&server.post(&[], &count).response_message()["result"]),
        "1"
    );
}
