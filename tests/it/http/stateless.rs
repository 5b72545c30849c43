//! Stateless requests over HTTP.

use serde_json::{Value, json};

use crate::support::{
    Folder, HttpServer, LIST_CHANGED, MODERN, TinyComponent, hostile, modern, result_text,
};

#[test]
fn a_single_response_is_json() {
    let server = HttpServer::start(&Folder::with("hostile.wasm", hostile())).wait_until_ready();
    let response = server.post_stateless(
        "tools/call",
        json!({"name": "echo", "arguments": {"text": "hi"}}),
        &[],
    );
    assert_eq!(
        (response.status, response.header("content-type")),
        (200, Some("application/json"))
    );
    assert!(response.header("mcp-session-id").is_none());
    let answer = response.json();
    assert_eq!(
        (
            result_text(&answer["result"]).as_str(),
            &answer["result"]["resultType"]
        ),
        ("hi", &json!("complete"))
    );
    let discovered = server.result("server/discover", json!({}));
    let supported = discovered["supportedVersions"].as_array().unwrap();
    assert!(supported.contains(&json!(MODERN)), "{discovered}");
    // Sessions and resumable streams do not exist in this revision.
    let ignored = [("Mcp-Session-Id", "nonsense"), ("Last-Event-ID", "7")];
    assert_eq!(
        server
            .post_stateless("tools/list", json!({}), &ignored)
            .status,
        200
    );
}

#[test]
fn progress_and_log_messages_arrive_on_the_stream_of_their_call() {
    let server = HttpServer::start(&Folder::with("hostile.wasm", hostile())).wait_until_ready();
    let meta = json!({"progressToken": "p", "io.modelcontextprotocol/logLevel": "info"});
    let params = json!({"name": "progress", "arguments": {"n": 3}, "_meta": meta});
    let response = server.post_stateless("tools/call", params, &[]);
    assert!(response.is_stream() && response.header("x-accel-buffering") == Some("no"));
    let messages = response.messages();
    let methods: Vec<&Value> = messages.iter().map(|message| &message["method"]).collect();
    assert_eq!(
        methods,
        [&json!("notifications/progress"); 3]
            .into_iter()
            .chain([&Value::Null])
            .collect::<Vec<_>>()
    );
    assert_eq!(result_text(&messages[3]["result"]), "3 steps");

    let meta = json!({"io.modelcontextprotocol/logLevel": "info"});
    let params = json!({"name": "log_flood", "arguments": {"n": 2}, "_meta": meta});
    let messages = server.post_stateless("tools/call", params, &[]).messages();
    assert_eq!(
        messages
            .iter()
            .filter(|message| message["method"] == "notifications/message")
            .count(),
        2
    );
}

#[test]
fn errors_have_their_status() {
    let server = HttpServer::start(&Folder::with("a.wasm", TinyComponent::new(&["a"]).build()))
        .wait_until_ready();
    let asked = |method: &str, params: Value| {
        let response = server.post_stateless(method, params, &[]);
        (response.status, response.json()["error"]["code"].clone())
    };
    assert_eq!(asked("ping", json!({})), (404, json!(-32601)));
    assert_eq!(asked("no/such", json!({})), (404, json!(-32601)));
    assert_eq!(
        asked("tools/call", json!({"name": "nobody"})),
        (200, json!(-32602))
    );
    let meta = json!({"_meta": {"io.modelcontextprotocol/clientCapabilities": 7}});
    assert_eq!(asked("tools/list", meta), (400, json!(-32602)));

    let raw = |headers: &[(&str, &str)], body: &str| {
        let response = server.post(headers, body.as_bytes());
        (response.status, response.json()["error"]["code"].clone())
    };
    let headers = [
        ("MCP-Protocol-Version", MODERN),
        ("Mcp-Method", "tools/list"),
    ];
    assert_eq!(raw(&headers, "{"), (400, json!(-32700)));
    assert_eq!(raw(&headers, "7"), (400, json!(-32600)));
    let bare = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).to_string();
    assert_eq!(
        raw(&headers, &bare),
        (400, json!(-32602)),
        "no _meta at all"
    );
    let batch = json!([modern(json!(1), "tools/list", json!({}))]).to_string();
    assert_eq!(raw(&headers, &batch).0, 400, "no batches");
    let old = json!({"_meta": {"io.modelcontextprotocol/protocolVersion": "2031-01-01"}});
    let unknown = modern(json!(1), "tools/list", old).to_string();
    let headers = [
        ("MCP-Protocol-Version", "2031-01-01"),
        ("Mcp-Method", "tools/list"),
    ];
    assert_eq!(raw(&headers, &unknown), (400, json!(-32022)));
    for method in ["GET", "DELETE"] {
        let headers = [
            ("MCP-Protocol-Version", MODERN),
            ("Accept", "text/event-stream"),
        ];
        assert_eq!(
            server.request(method, "/mcp", &headers, b"").status,
            405,
            "{method}"
        );
    }
    assert_eq!(server.request("PUT", "/mcp", &[], b"").status, 405);
    assert_eq!(server.get("/nothing", &[]).status, 404);
}

#[test]
fn a_post_must_be_json_and_accept_json() {
    let server = HttpServer::start(&Folder::new());
    let with = |name: &str, value: &str| {
        server
            .post_stateless("tools/list", json!({}), &[(name, value)])
            .status
    };
    for (accept, status) in [
        ("application/json, text/event-stream", 200),
        ("text/event-stream;q=0.5, Application/JSON;q=1", 200),
        ("*/*", 200),
        ("application/*, text/*", 200),
        ("application/json", 200),
        ("application/json, text/event-stream;q=0", 200),
        ("-", 200),
        ("text/event-stream", 406),
        ("application/json;q=0, text/event-stream", 406),
        ("application/json;q=0.0, */*", 406),
        ("text/html", 406),
    ] {
        assert_eq!(with("Accept", accept), status, "{accept}");
    }
    for (kind, status) in [
        ("application/json", 200),
        ("application/json; charset=utf-8", 200),
        ("text/plain", 415),
        ("application/jsonx", 415),
        ("-", 415),
    ] {
        assert_eq!(with("Content-Type", kind), status, "{kind}");
    }
}

#[test]
fn a_body_that_is_too_long_is_refused() {
    let server = HttpServer::start_with_config(&Folder::new(), "[server]\nrequest_size = \"1KiB\"");
    let long = json!({"x": "x".repeat(100_000)});
    let response = server.post_stateless("tools/list", long.clone(), &[]);
    assert_eq!(response.status, 413);
    let said = response.json()["error"]["message"].clone();
    assert_eq!(
        said,
        "the message is larger than 1.0 KiB (to allow more, raise server.request_size)"
    );
    // Like above, without a `Content-Length`.
    let body = modern(json!(1), "tools/list", long).to_string();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: */*\r\n\
         Transfer-Encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n0\r\n\r\n",
        body.len()
    );
    assert_eq!(server.send_raw(head).status, 413);
    assert_eq!(
        server.post_stateless("tools/list", json!({}), &[]).status,
        200
    );
}

#[test]
fn a_client_that_is_still_sending_receives_the_error_response() {
    let server = HttpServer::start_with_config(&Folder::new(), "[server]\nrequest_size = \"1KiB\"");
    // More than the socket buffers of both ends hold.
    let long = vec![b'x'; 12 << 20];
    for (path, headers, status) in [
        ("/mcp", &[][..], 413),
        ("/mcp", &[("Origin", "https://evil.example")], 403),
        ("/no", &[], 404),
    ] {
        let all: Vec<_> = [("Content-Type", "application/json"), ("Accept", "*/*")]
            .iter()
            .chain(headers)
            .copied()
            .collect();
        assert_eq!(
            server.request("POST", path, &all, &long).status,
            status,
            "{path} {headers:?}"
        );
    }
}

#[test]
fn a_client_that_hangs_up_cancels_its_call() {
    let folder = Folder::with("hostile.wasm", hostile());
    // The second call starts only when the first one has ended.
    folder.put(
        "hostile.toml",
        "[limits]\nconcurrency = 1\nfuel = 1_000_000_000_000\ntimeout = \"10m\"",
    );
    let server = HttpServer::start(&folder).wait_until_ready();
    for tool in ["loop_forever", "sleep_hour"] {
        let params = json!({"name": tool, "_meta": {"progressToken": 1}});
        let mut response = server.post_stateless("tools/call", params, &[]);
        assert_eq!(
            response.next_message().unwrap()["method"],
            "notifications/progress"
        );
        response.close();
        assert_eq!(
            result_text(&server.result("tools/call", json!({"name": "count"}))),
            "1",
            "after {tool}"
        );
    }
    // The client disconnects before the response begins.
    let body = modern(json!(1), "tools/call", json!({"name": "loop_forever"})).to_string();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: */*\r\n\
         MCP-Protocol-Version: {MODERN}\r\nMcp-Method: tools/call\r\nMcp-Name: loop_forever\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    server.send_and_close([head.as_bytes(), body.as_bytes()].concat());
    assert_eq!(
        result_text(&server.result("tools/call", json!({"name": "count"}))),
        "1"
    );
}

#[test]
fn a_slow_call_sends_keep_alive_comments() {
    let folder = Folder::with("hostile.wasm", hostile());
    folder.put("hostile.toml", folder.create_gate());
    let server = HttpServer::start_with_config(&folder, "[http]\nstream_keep_alive = \"100ms\"")
        .wait_until_ready();
    let mut response = server.post_stateless("tools/call", json!({"name": "wait_for_gate"}), &[]);
    assert!(
        response.is_stream(),
        "it has begun before the answer is there"
    );
    for _ in 0..2 {
        assert_eq!(
            response.next_event(),
            Some((String::new(), String::new())),
            "a comment"
        );
    }
    folder.open_gate();
    assert!(result_text(&response.response_message()["result"]).starts_with("build-marker"));
}

#[test]
fn each_subscription_has_a_separate_stream() {
    let folder = Folder::with("a.wasm", TinyComponent::new(&["a"]).build());
    let mut server =
        HttpServer::start_with_config(&folder, "[http]\nstream_keep_alive = \"100ms\"")
            .wait_until_ready();
    let params =
        || json!({"notifications": {"toolsListChanged": true, "promptsListChanged": true}});
    let mut streams =
        [(); 2].map(|()| server.post_stateless("subscriptions/listen", params(), &[]));
    for stream in &mut streams {
        assert!(stream.is_stream());
        let acknowledged = stream.next_message().unwrap();
        assert_eq!(
            acknowledged["method"],
            "notifications/subscriptions/acknowledged"
        );
        assert_eq!(
            acknowledged["params"]["notifications"],
            params()["notifications"]
        );
        assert_eq!(
            acknowledged["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"],
            1
        );
        // The stream is idle, but still open.
        assert_eq!(stream.next_event(), Some((String::new(), String::new())));
    }
    folder.put("b.wasm", TinyComponent::new(&["b"]).build());
    for stream in &mut streams {
        assert_eq!(stream.next_message().unwrap()["method"], LIST_CHANGED);
    }
    assert_eq!(server.stop(), Some(0));
    for stream in &mut streams {
        let last = stream.next_message().unwrap();
        assert_eq!(
            last["result"]["_meta"]["io.modelcontextprotocol/subscriptionId"],
            1
        );
        assert_eq!(stream.next_message(), None);
    }
}

#[test]
fn shutdown_waits_for_running_calls_within_the_grace_period() {
    let folder = Folder::with("hostile.wasm", hostile());
    folder.put("hostile.toml", folder.create_gate());
    let mut server = HttpServer::start(&folder).wait_until_ready();
    let params = json!({"name": "wait_for_gate", "_meta": {"progressToken": 1}});
    let mut response = server.post_stateless("tools/call", params, &[]);
    assert_eq!(
        response.next_message().unwrap()["method"],
        "notifications/progress"
    );
    let ending = std::thread::spawn(move || server.stop());
    folder.open_gate();
    assert!(result_text(&response.response_message()["result"]).starts_with("build-marker"));
    assert_eq!(ending.join().unwrap(), Some(0));

    let mut server = HttpServer::start_with_config(
        &Folder::with("hostile.wasm", hostile()),
        "[server]\ngrace_period = \"100ms\"",
    )
    .wait_until_ready();
    let mut response = server.post_stateless(
        "tools/call",
        json!({"name": "loop_forever", "_meta": {"progressToken": 1}}),
        &[],
    );
    assert_eq!(
        response.next_message().unwrap()["method"],
        "notifications/progress"
    );
    assert_eq!(server.stop(), Some(0));
    server
        .log
        .wait_for("stopped requests that were still running when the grace period ended");
}

#[test]
fn probes_report_the_state_of_the_server() {
    let folder = Folder::new();
    folder.put(
        "hung.wasm",
        TinyComponent::new(&["hung"])
            .before_list("(loop $for-ever (br $for-ever))")
            .build(),
    );
    let server = HttpServer::start_with_config(
        &folder,
        "[describe]\nfuel = 1_000_000_000_000\ntimeout = \"10m\"",
    );
    // The probe may use any name as `Host`.
    let probe = |path: &str| {
        let response = server.get(path, &[("Host", "10.1.2.3:80")]);
        (response.status, response.text())
    };
    assert_eq!(probe("/healthz"), (200, "ok\n".into()));
    assert_eq!(probe("/readyz"), (503, "loading\n".into()));
    folder.remove("hung.wasm");
    let server = HttpServer::start(&Folder::new()).wait_until_ready();
    assert_eq!(server.get("/readyz", &[]).text(), "ready\n");
}

#[test]
fn temporary_rejections_have_a_retry_delay() {
    let folder = Folder::with("hostile.wasm", hostile());
    folder.put("hostile.toml", "[rate_limit]\ncalls = 1\nper = \"1h\"");
    let server = HttpServer::start(&folder).wait_until_ready();
    server.result("tools/call", json!({"name": "count"}));
    let response = server.post_stateless("tools/call", json!({"name": "count"}), &[]);
    assert_eq!(response.status, 200);
    let seconds: u64 = response.header("retry-after").unwrap().parse().unwrap();
    assert!((3500..=3600).contains(&seconds), "{seconds}");
    assert_eq!(
        response.json()["result"]["_meta"]["dev.toolbay/error"],
        "rate-limited"
    );
}

#[test]
fn a_trace_context_can_be_in_the_headers_of_a_request() {
    let server = HttpServer::start(&Folder::with("hostile.wasm", hostile())).wait_until_ready();
    let trace = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01";
    let seen = server
        .post_stateless(
            "tools/call",
            json!({"name": "environment"}),
            &[("traceparent", trace)],
        )
        .response_message();
    let seen = result_text(&seen["result"]);
    assert!(
        seen.contains("TRACEPARENT=00-0af7651916cd43dd8448eb211c80319c-"),
        "{seen}"
    );
}

#[test]
fn an_address_in_use_is_reported_before_anything_starts() {
    let server = HttpServer::start(&Folder::new());
    let folder = Folder::new();
    let outcome = crate::support::ToolbayCommand::new(&folder)
        .args(["serve", "--http", &server.address.to_string()])
        .run();
    assert_eq!(outcome.code, 1, "{outcome}");
    assert!(
        outcome.stderr.contains("failed to listen on 127.0.0.1"),
        "{outcome}"
    );
    assert!(server.folder().plugin_folder().is_dir());
}
