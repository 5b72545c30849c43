//! Sessions: from `initialize` to DELETE, and the activity that prevents their timeout.

use serde_json::{Value, json};

use crate::support::{
    Folder, HttpServer, LIST_CHANGED, TinyComponent, hostile, initialize, result_text,
};

#[test]
fn a_session_of_every_revision_lists_calls_and_ends() {
    let server = HttpServer::start(&Folder::with("hostile.wasm", hostile())).wait_until_ready();
    for revision in &server.session_revisions() {
        let session = server.start_session(revision);
        assert!(
            session.id.len() >= 32 && session.id.bytes().all(|byte| byte.is_ascii_graphic()),
            "{}",
            session.id
        );
        assert!(session.tool_names().contains(&"echo".to_owned()));
        let called = session.result(
            "tools/call",
            json!({"name": "echo", "arguments": {"text": "hi"}}),
        );
        assert_eq!(
            (result_text(&called).as_str(), called.get("resultType")),
            ("hi", None)
        );
        assert_eq!(session.result("ping", json!({})), json!({}));
        assert_eq!(
            session.result("logging/setLevel", json!({"level": "error"})),
            json!({})
        );
        let unknown = session.request("no/such", json!({}));
        assert_eq!(unknown.status, 200);
        assert_eq!(unknown.response_message()["error"]["code"], -32601);
        let deleted = server.request("DELETE", "/mcp", &session.headers(), b"");
        assert_eq!(deleted.status, 204, "{revision}");
        assert_eq!(session.request("ping", json!({})).status, 404, "{revision}");
    }
}

#[test]
fn a_session_is_required_and_must_exist() {
    let server = HttpServer::start(&Folder::new());
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}).to_string();
    let post = |headers: &[(&str, &str)]| server.post(headers, ping.as_bytes()).status;
    assert_eq!(post(&[]), 400);
    assert_eq!(post(&[("Mcp-Session-Id", "0123")]), 404);
    let session = server.start_session("2025-11-25");
    let id = ("Mcp-Session-Id", session.id.as_str());
    assert_eq!(post(&[id]), 200, "the version is the session's");
    assert_eq!(post(&[id, ("MCP-Protocol-Version", "2025-11-25")]), 200);
    for version in ["2024-01-01", "nonsense", ""] {
        assert_eq!(
            post(&[id, ("MCP-Protocol-Version", version)]),
            400,
            "{version:?}"
        );
    }
    let stream = ("Accept", "text/event-stream");
    assert_eq!(server.get("/mcp", &[stream]).status, 400);
    assert_eq!(
        server
            .get("/mcp", &[stream, ("Mcp-Session-Id", "0123")])
            .status,
        404
    );
    assert_eq!(
        server.get("/mcp", &[id, ("Accept", "text/html")]).status,
        406
    );
    assert_eq!(
        server
            .request("DELETE", "/mcp", &[("Mcp-Session-Id", "0123")], b"")
            .status,
        404
    );
    // A session whose handshake fails does not exist.
    let mut wrong = initialize("2025-11-25");
    wrong["params"] = json!({});
    let response = server.post(&[], wrong.to_string().as_bytes());
    assert!(response.header("mcp-session-id").is_none());
    assert_eq!(response.json()["error"]["code"], -32602);
}

#[test]
fn changes_are_notified_once_on_the_stream_of_the_session() {
    let folder = Folder::with("a.wasm", TinyComponent::new(&["a"]).build());
    let server = HttpServer::start_with_config(&folder, "[http]\nstream_keep_alive = \"100ms\"")
        .wait_until_ready();
    let session = server.start_session("2025-06-18");
    let mut stream = session.open_stream();
    assert_eq!(session.tool_names(), ["a"]);
    folder.put("b.wasm", TinyComponent::new(&["b"]).build());
    let told = stream.next_message().unwrap();
    assert_eq!(told, json!({"jsonrpc": "2.0", "method": LIST_CHANGED}));
    assert_eq!(session.tool_names(), ["a", "b"]);

    // While no stream is open, the notification waits for one.
    stream.close();
    folder.put("c.wasm", TinyComponent::new(&["c"]).build());
    while session.tool_names() != ["a", "b", "c"] {}
    let mut first = session.open_stream();
    assert_eq!(first.next_message().unwrap()["method"], LIST_CHANGED);

    // Of two streams, the newer one gets it; the older one only after the newer one was closed.
    let mut second = session.open_stream();
    assert_eq!(
        second.next_event(),
        Some((String::new(), String::new())),
        "it is open"
    );
    folder.put("d.wasm", TinyComponent::new(&["d"]).build());
    assert_eq!(second.next_message().unwrap()["method"], LIST_CHANGED);
    second.close();
    folder.put("e.wasm", TinyComponent::new(&["e"]).build());
    assert_eq!(first.next_message().unwrap()["method"], LIST_CHANGED);
}

#[test]
fn no_notification_is_sent_before_the_client_is_ready() {
    let folder = Folder::with("a.wasm", TinyComponent::new(&["a"]).build());
    let server = HttpServer::start_with_config(&folder, "[http]\nstream_keep_alive = \"100ms\"")
        .wait_until_ready();
    let response = server.post(&[], initialize("2025-11-25").to_string().as_bytes());
    let id = response.header("mcp-session-id").unwrap().to_owned();
    drop(response.response_message());
    let headers = [
        ("Mcp-Session-Id", id.as_str()),
        ("Accept", "text/event-stream"),
    ];
    let mut stream = server.get("/mcp", &headers);
    folder.put("b.wasm", TinyComponent::new(&["b"]).build());
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).to_string();
    let listed = || {
        server
            .post(&headers[..1], list.as_bytes())
            .response_message()["result"]["tools"]
            .as_array()
            .unwrap()
            .len()
    };
    // Requests are answered before that.
    while listed() < 2 {}
    assert_eq!(
        stream.next_event(),
        Some((String::new(), String::new())),
        "a comment and nothing else"
    );
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string();
    assert_eq!(server.post(&headers[..1], ready.as_bytes()).status, 202);
    folder.put("c.wasm", TinyComponent::new(&["c"]).build());
    assert_eq!(stream.next_message().unwrap()["method"], LIST_CHANGED);
}

#[test]
fn progress_uses_the_stream_of_its_call_and_ends_when_it_is_cancelled() {
    let folder = Folder::with("hostile.wasm", hostile());
    folder.put(
        "hostile.toml",
        "[limits]\nconcurrency = 1\nfuel = 1_000_000_000_000\ntimeout = \"10m\"",
    );
    let server = HttpServer::start(&folder).wait_until_ready();
    let session = server.start_session("2025-11-25");
    let call = json!({"name": "progress", "arguments": {"n": 3}, "_meta": {"progressToken": "p"}});
    let messages = session.request("tools/call", call).messages();
    assert_eq!(messages.len(), 4);
    assert!(
        messages
            .iter()
            .take(3)
            .all(|message| message["params"]["progressToken"] == "p"),
        "{messages:?}"
    );

    let call = json!({"name": "loop_forever", "_meta": {"progressToken": 1}});
    let message = json!({"jsonrpc": "2.0", "id": "spin", "method": "tools/call", "params": call});
    let mut response = session.post(&message);
    assert_eq!(
        response.next_message().unwrap()["method"],
        "notifications/progress"
    );
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "spin"}});
    assert_eq!(session.post(&cancel).status, 202);
    assert_eq!(response.next_message(), None, "no answer");
    assert_eq!(
        result_text(&session.result("tools/call", json!({"name": "count"}))),
        "1"
    );
}

#[test]
fn an_id_that_is_used_again_belongs_to_the_new_request() {
    let folder = Folder::with("hostile.wasm", hostile());
    folder.put(
        "hostile.toml",
        "[limits]\nconcurrency = 1\nfuel = 1_000_000_000_000\ntimeout = \"10m\"",
    );
    let server = HttpServer::start(&folder).wait_until_ready();
    let session = server.start_session("2025-11-25");
    let spin = |token: u64| {
        let call = json!({"name": "loop_forever", "_meta": {"progressToken": token}});
        let mut response = session
            .post(&json!({"jsonrpc": "2.0", "id": "a", "method": "tools/call", "params": call}));
        assert_eq!(
            response.next_message().unwrap()["params"]["progressToken"],
            token
        );
        response
    };
    let cancel = || {
        let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "a"}});
        assert_eq!(session.post(&cancel).status, 202);
    };
    let mut first = spin(1);
    for round in 2..20 {
        cancel();
        let mut second = spin(round);
        // The end of the first call does not end the second one.
        assert_eq!(first.next_message(), None, "no answer");
        let again = json!({"jsonrpc": "2.0", "id": "a", "method": "tools/call", "params": {"name": "count"}});
        let refused = session.post(&again);
        assert_eq!(refused.status, 400);
        assert_eq!(
            refused.json()["error"]["message"],
            "a request with this id is already in progress"
        );
        std::mem::swap(&mut first, &mut second);
    }
    cancel();
    assert_eq!(first.next_message(), None);
    assert_eq!(
        result_text(&session.result("tools/call", json!({"name": "count"}))),
        "1"
    );
}

#[test]
fn disconnecting_does_not_cancel_a_call_in_a_session() {
    let folder = Folder::with("hostile.wasm", hostile());
    folder.put(
        "hostile.toml",
        folder.create_gate() + "[limits]\nconcurrency = 1",
    );
    // Otherwise a waiting call would let other calls run.
    let server =
        HttpServer::start_with_config(&folder, "[server]\nsuspended_calls = 0").wait_until_ready();
    let session = server.start_session("2025-11-25");
    let call = json!({"name": "wait_for_gate", "_meta": {"progressToken": 1}});
    let mut response = session.request("tools/call", call);
    assert_eq!(
        response.next_message().unwrap()["method"],
        "notifications/progress"
    );
    response.close();
    // The call still holds the only slot, so no other call gets it.
    let waiting = json!({"name": "count"});
    std::thread::scope(|threads| {
        let other = threads.spawn(|| {
            server
                .start_session("2025-11-25")
                .result("tools/call", waiting)
        });
        folder.open_gate();
        assert_eq!(result_text(&other.join().unwrap()), "1");
    });
}

#[test]
fn batches_are_answered_in_revisions_that_define_them() {
    let server = HttpServer::start(&Folder::with("a.wasm", TinyComponent::new(&["a"]).build()))
        .wait_until_ready();
    let batch = json!([
        {"jsonrpc": "2.0", "id": "p", "method": "ping"},
        {"jsonrpc": "2.0", "method": "notifications/whatever"},
        {"jsonrpc": "2.0", "id": "c", "method": "tools/call", "params": {"name": "a"}},
    ]);
    let session = server.start_session("2025-03-26");
    let answers = session.post(&batch).response_message();
    let mut ids: Vec<&Value> = answers
        .as_array()
        .unwrap()
        .iter()
        .map(|answer| &answer["id"])
        .collect();
    ids.sort_by_key(ToString::to_string);
    assert_eq!(ids, [&json!("c"), &json!("p")]);
    let silent = json!([{"jsonrpc": "2.0", "method": "notifications/whatever"}]);
    assert_eq!(session.post(&silent).status, 202);
    let nested = json!([initialize("2025-03-26")]);
    assert_eq!(
        session.post(&nested).response_message()[0]["error"]["code"],
        -32600
    );
    for revision in ["2024-11-05", "2025-06-18", "2025-11-25"] {
        let response = server.start_session(revision).post(&batch);
        assert_eq!(response.status, 400, "{revision}");
        assert_eq!(response.json()["error"]["code"], -32600);
    }
}

#[test]
fn an_idle_session_ends_and_one_with_a_stream_outlives_every_timeout() {
    let folder = Folder::with("a.wasm", TinyComponent::new(&["a"]).build());
    let config = "[server]\nqueue_timeout = \"100ms\"\ngrace_period = \"100ms\"\n\
                  [http]\nsession_idle_timeout = \"300ms\"\nstream_keep_alive = \"100ms\"\nidle_timeout = \"300ms\"";
    let server = HttpServer::start_with_config(&folder, config).wait_until_ready();
    for revision in &server.session_revisions() {
        let quiet = server.start_session(revision);
        let listening = server.start_session(revision);
        let mut stream = listening.open_stream();
        // Three times the idle timeout, measured by the server's own clock.
        for _ in 0..10 {
            assert_eq!(stream.next_event(), Some((String::new(), String::new())));
        }
        assert_eq!(quiet.request("ping", json!({})).status, 404);
        folder.put(
            &format!("{revision}.wasm"),
            TinyComponent::new(&[revision.as_str()]).build(),
        );
        assert_eq!(stream.next_message().unwrap()["method"], LIST_CHANGED);
        assert_eq!(listening.request("ping", json!({})).status, 200);
    }
    let wanted = json!({"notifications": {"toolsListChanged": true}});
    let mut subscription = server.post_stateless("subscriptions/listen", wanted, &[]);
    subscription.next_message().unwrap();
    for _ in 0..10 {
        assert_eq!(
            subscription.next_event(),
            Some((String::new(), String::new()))
        );
    }
    folder.put("b.wasm", TinyComponent::new(&["b"]).build());
    assert_eq!(subscription.next_message().unwrap()["method"], LIST_CHANGED);
}

#[test]
fn the_number_of_sessions_is_limited_and_idle_ones_are_replaced() {
    let config = "[http]\nsessions = 3\nstream_keep_alive = \"100ms\"";
    let server = HttpServer::start_with_config(&Folder::new(), config);
    let sessions = [(); 3].map(|()| server.start_session("2025-11-25"));
    let mut streams: Vec<_> = sessions[..2]
        .iter()
        .map(crate::support::HttpSession::open_stream)
        .collect();
    for stream in &mut streams {
        stream.next_event();
    }
    // The third session is removed for a fourth.
    let fourth = server.start_session("2025-11-25");
    assert_eq!(sessions[2].request("ping", json!({})).status, 404);
    let mut last = fourth.open_stream();
    last.next_event();
    let refused = server.post(&[], initialize("2025-11-25").to_string().as_bytes());
    assert_eq!(
        (refused.status, refused.header("retry-after")),
        (503, Some("5"))
    );
    for session in sessions[..2].iter().chain([&fourth]) {
        assert_eq!(session.request("ping", json!({})).status, 200);
    }
}

#[test]
fn streams_of_sessions_end_when_the_server_ends() {
    let mut server = HttpServer::start(&Folder::new());
    let mut stream = server.start_session("2025-11-25").open_stream();
    assert_eq!(server.stop(), Some(0));
    assert_eq!(stream.next_message(), None);
}
