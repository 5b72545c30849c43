//! The transport of 2024-11-05.

use serde_json::{Value, json};

use crate::support::{
    Folder, HttpResponse, HttpServer, LIST_CHANGED, TinyComponent, ToolbayCommand, hostile,
    initialize, result_text,
};

fn start(folder: &Folder) -> HttpServer {
    HttpServer::run(ToolbayCommand::new(folder).args(["serve", "--http", "127.0.0.1:0", "--sse"]))
        .wait_until_ready()
}

/// Opens the stream, and returns the URL for messages.
fn open(server: &HttpServer) -> (HttpResponse, String) {
    let mut stream = server.get("/sse", &[("Accept", "text/event-stream")]);
    assert!(stream.status == 200 && stream.is_stream());
    let (kind, endpoint) = stream.next_event().unwrap();
    assert_eq!(kind, "endpoint");
    // Relative: behind a proxy, both can have a prefix.
    assert!(endpoint.starts_with("messages?session="), "{endpoint}");
    (stream, format!("/{endpoint}"))
}

fn post(server: &HttpServer, endpoint: &str, message: &Value) -> u16 {
    server
        .request(
            "POST",
            endpoint,
            &[("Content-Type", "application/json")],
            message.to_string().as_bytes(),
        )
        .status
}

#[test]
fn a_client_of_2024_lists_calls_and_is_notified() {
    let folder = Folder::with("hostile.wasm", hostile());
    let server = start(&folder);
    let (mut stream, endpoint) = open(&server);
    assert_eq!(post(&server, &endpoint, &initialize("2024-11-05")), 202);
    assert_eq!(
        stream.next_message().unwrap()["result"]["protocolVersion"],
        "2024-11-05"
    );
    assert_eq!(
        post(
            &server,
            &endpoint,
            &json!({"jsonrpc": "2.0", "method": "notifications/initialized"})
        ),
        202
    );
    let call = json!({"name": "progress", "arguments": {"n": 2}, "_meta": {"progressToken": 1}});
    post(
        &server,
        &endpoint,
        &json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}),
    );
    for step in [1.0, 2.0] {
        let progress = stream.next_message().unwrap();
        // Members that this revision does not have are omitted.
        assert_eq!(
            progress["params"],
            json!({"progressToken": 1, "progress": step, "total": 2.0})
        );
    }
    assert_eq!(
        result_text(&stream.next_message().unwrap()["result"]),
        "2 steps"
    );
    post(
        &server,
        &endpoint,
        &json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}),
    );
    let listed = stream.next_message().unwrap();
    assert!(listed["result"]["tools"][0].get("title").is_none());
    folder.put("new.wasm", TinyComponent::new(&["new"]).build());
    assert_eq!(stream.next_message().unwrap()["method"], LIST_CHANGED);
    // Unreadable messages get their error on the stream as well.
    assert_eq!(server.request("POST", &endpoint, &[], b"{").status, 202);
    assert_eq!(stream.next_message().unwrap()["error"]["code"], -32700);
}

#[test]
fn a_quiet_stream_outlives_every_timeout() {
    let folder = Folder::with("a.wasm", TinyComponent::new(&["a"]).build());
    let config = "[http]\nsse = true\nsession_idle_timeout = \"300ms\"\nstream_keep_alive = \"100ms\"\nidle_timeout = \"300ms\"";
    let server = HttpServer::start_with_config(&folder, config).wait_until_ready();
    let (mut stream, endpoint) = open(&server);
    post(&server, &endpoint, &initialize("2024-11-05"));
    stream.next_message().unwrap();
    post(
        &server,
        &endpoint,
        &json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
    );
    for _ in 0..10 {
        assert_eq!(stream.next_event(), Some((String::new(), String::new())));
    }
    post(
        &server,
        &endpoint,
        &json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}),
    );
    assert_eq!(
        stream.next_message().unwrap()["result"]["tools"][0]["name"],
        "a"
    );
    folder.put("b.wasm", TinyComponent::new(&["b"]).build());
    assert_eq!(stream.next_message().unwrap()["method"], LIST_CHANGED);
}

#[test]
fn the_session_ends_with_its_stream() {
    let folder = Folder::with("hostile.wasm", hostile());
    folder.put(
        "hostile.toml",
        "[limits]\nconcurrency = 1\nfuel = 1_000_000_000_000\ntimeout = \"10m\"",
    );
    let server = start(&folder);
    let (mut stream, endpoint) = open(&server);
    post(&server, &endpoint, &initialize("2024-11-05"));
    stream.next_message().unwrap();
    let call = json!({"name": "loop_forever", "_meta": {"progressToken": 1}});
    post(
        &server,
        &endpoint,
        &json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}),
    );
    assert_eq!(
        stream.next_message().unwrap()["method"],
        "notifications/progress"
    );
    stream.close();
    assert_eq!(
        result_text(&server.result("tools/call", json!({"name": "count"}))),
        "1",
        "the call went with it"
    );
    assert_eq!(
        post(
            &server,
            &endpoint,
            &json!({"jsonrpc": "2.0", "id": 2, "method": "ping"})
        ),
        404
    );
    assert_eq!(
        post(
            &server,
            "/messages?session=0123",
            &json!({"jsonrpc": "2.0", "id": 2, "method": "ping"})
        ),
        404
    );
    for path in [
        "/messages",
        "/messages?x=1",
        "/messages?session=1&session=2",
    ] {
        let refused = server.request("POST", path, &[("Content-Type", "application/json")], b"{}");
        assert_eq!(refused.status, 400, "{path}");
        let said = refused.text();
        assert!(said.contains("/messages?session=ID"), "{path}: {said}");
    }
}

#[test]
fn the_sse_stream_ends_when_the_server_ends() {
    let mut server = start(&Folder::new());
    let (mut stream, _) = open(&server);
    assert_eq!(server.stop(), Some(0));
    assert_eq!(stream.next_message(), None);
}

#[test]
fn without_the_flag_the_transport_is_not_served() {
    let server = HttpServer::start(&Folder::new());
    assert_eq!(
        server
            .get("/sse", &[("Accept", "text/event-stream")])
            .status,
        404
    );
    assert_eq!(
        server
            .request("POST", "/messages?session=1", &[], b"{}")
            .status,
        404
    );
}
