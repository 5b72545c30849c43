//! The revision without sessions, over standard input and output: every request carries its own
//! metadata.

use serde_json::{Value, json};

use crate::support::{
    Folder, LIST_CHANGED, StdioServer, TinyComponent, TinyTool, hostile, modern, result_text,
    sample,
};

const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

/// Sends a stateless request and returns its id.
fn send(server: &mut StdioServer, id: u64, method: &str, params: Value) -> u64 {
    server.send(modern(json!(id), method, params).to_string());
    id
}

fn ask(server: &mut StdioServer, id: u64, method: &str, params: Value) -> Value {
    send(server, id, method, params);
    server.wait_for_response(id)
}

fn result(server: &mut StdioServer, id: u64, method: &str, params: Value) -> Value {
    let mut answer = ask(server, id, method, params);
    assert!(answer.get("result").is_some(), "{method} failed: {answer}");
    answer["result"].take()
}

/// Opens a subscription to changes of tools, and waits until it is open.
fn listen(server: &mut StdioServer, id: u64) {
    send(
        server,
        id,
        "subscriptions/listen",
        json!({"notifications": {"toolsListChanged": true}}),
    );
    let acknowledged = server.wait_for("the acknowledgement", |message| {
        message["method"] == "notifications/subscriptions/acknowledged"
            && message["params"]["_meta"][SUBSCRIPTION] == id
    });
    assert_eq!(
        acknowledged["params"]["notifications"],
        json!({"toolsListChanged": true})
    );
}

fn expect_list_changed(server: &mut StdioServer, id: u64) {
    server.wait_for("the change", |message| {
        message["method"] == LIST_CHANGED && message["params"]["_meta"][SUBSCRIPTION] == id
    });
}

#[test]
fn discovery_says_what_the_server_is() {
    let mut server = StdioServer::spawn(&Folder::new());
    let discovered = result(&mut server, 1, "server/discover", json!({}));
    insta::assert_json_snapshot!(discovered, {
        r#"._meta["io.modelcontextprotocol/serverInfo"].version"# => "<version>",
    });
}

#[test]
fn a_client_without_a_session_lists_and_calls() {
    let list = TinyTool {
        output: Some(r#"{"type":"array"}"#.into()),
        ..TinyTool::new("returns-a-list")
    };
    let folder = Folder::with(
        "a.wasm",
        TinyComponent::with_tools(vec![list])
            .with_structured("[1,2]")
            .build(),
    );
    let mut server = StdioServer::spawn(&folder);
    let listed = result(&mut server, 1, "tools/list", json!({}));
    assert_eq!(
        (
            &listed["resultType"],
            &listed["ttlMs"],
            &listed["cacheScope"]
        ),
        (&json!("complete"), &json!(0), &json!("public"))
    );
    assert_eq!(listed["tools"][0]["outputSchema"], json!({"type": "array"}));
    let mut called = result(
        &mut server,
        2,
        "tools/call",
        json!({"name": "returns-a-list"}),
    );
    assert_eq!(
        called["_meta"]["io.modelcontextprotocol/serverInfo"]["name"],
        "toolbay"
    );
    called.as_object_mut().unwrap().remove("_meta");
    let content = json!([{"type": "text", "text": "fine"}]);
    assert_eq!(
        called,
        json!({"resultType": "complete", "content": content, "structuredContent": [1, 2]})
    );
    let refused = result(
        &mut server,
        3,
        "tools/call",
        json!({"name": "returns-a-list", "arguments": {}}),
    );
    assert!(refused.get("isError").is_none(), "{refused}");
}

#[test]
fn every_error_of_a_stateless_request_has_its_code() {
    let needy = TinyTool {
        meta: Some(r#"{"dev.toolbay/client-capabilities":{"sampling":{}}}"#.into()),
        ..TinyTool::new("needy")
    };
    let typed = TinyTool {
        input: r#"{"type":"object","required":["n"]}"#.into(),
        ..TinyTool::new("typed")
    };
    let mut server = StdioServer::spawn(&Folder::with(
        "a.wasm",
        TinyComponent::with_tools(vec![needy, typed]).build(),
    ));
    let supported =
        result(&mut server, 0, "server/discover", json!({}))["supportedVersions"].take();
    result(&mut server, 1, "tools/list", json!({}));
    let mut id = 1;
    let mut error = |method: &str, params: Value| {
        id += 1;
        let mut answer = ask(&mut server, id, method, params);
        answer["error"].take()
    };
    // These methods belong to sessions and do not exist here.
    for method in [
        "ping",
        "initialize",
        "logging/setLevel",
        "resources/subscribe",
        "resources/unsubscribe",
    ] {
        assert_eq!(error(method, json!({}))["code"], -32601, "{method}");
    }
    let meta = |key: &str, value: Value| json!({"_meta": {format!("io.modelcontextprotocol/{key}"): value}, "name": "typed"});
    for version in ["2999-01-01", "2025-11-25", ""] {
        let unsupported = error("tools/list", meta("protocolVersion", json!(version)));
        assert_eq!(unsupported["code"], -32022);
        // The rejected version is not listed, although it is supported in a session.
        let others: Vec<&Value> = supported
            .as_array()
            .unwrap()
            .iter()
            .filter(|known| **known != version)
            .collect();
        assert_eq!(
            unsupported["data"],
            json!({"supported": others, "requested": version})
        );
    }
    for (key, value) in [
        ("protocolVersion", json!(7)),
        ("clientCapabilities", json!([1])),
        ("logLevel", json!("loud")),
    ] {
        let malformed = error("tools/call", meta(key, value));
        assert_eq!(malformed["code"], -32602, "{malformed}");
        assert!(
            malformed["message"].as_str().unwrap().contains(key),
            "{malformed}"
        );
    }
    let missing = error("tools/call", json!({"name": "needy"}));
    assert_eq!(
        (&missing["code"], &missing["data"]),
        (
            &json!(-32021),
            &json!({"requiredCapabilities": {"sampling": {}}})
        )
    );
    for params in [
        json!({}),
        json!({"name": "nobody"}),
        json!({"name": "typed", "arguments": ["x"]}),
    ] {
        assert_eq!(
            error("tools/call", params.clone())["code"],
            -32602,
            "{params}"
        );
    }
    assert_eq!(
        error("tools/list", json!({"cursor": ""}))["message"],
        Value::Null,
        "an empty cursor is one"
    );
    assert_eq!(error("subscriptions/listen", json!({}))["code"], -32602);
    let able = json!({"name": "needy", "_meta": {"io.modelcontextprotocol/clientCapabilities": {"sampling": {}}}});
    assert_eq!(
        result_text(&result(&mut server, 100, "tools/call", able)),
        "fine"
    );
    // Invalid arguments are reported to the model.
    assert_eq!(
        result(&mut server, 101, "tools/call", json!({"name": "typed"}))["isError"],
        true
    );
}

#[test]
fn a_request_without_a_session_or_a_revision_is_rejected_with_both_options() {
    let mut server = StdioServer::spawn(&Folder::new());
    for method in [
        "tools/list",
        "tools/call",
        "server/discover",
        "subscriptions/listen",
        "logging/setLevel",
    ] {
        let error = server.error(method, json!({}));
        assert_eq!(error["code"], -32602, "{method}");
        let message = error["message"].as_str().unwrap();
        assert!(
            message.contains("initialize") && message.contains("protocolVersion"),
            "{message}"
        );
    }
    assert_eq!(server.error("nothing/such", json!({}))["code"], -32601);
}

#[test]
fn sessions_and_stateless_requests_share_one_process() {
    let folder = Folder::with("a.wasm", TinyComponent::new(&["a"]).build());
    let mut server = StdioServer::spawn(&folder);
    assert_eq!(
        result(&mut server, 1000, "server/discover", json!({}))["resultType"],
        "complete"
    );
    // An unexpected notification in between has no effect.
    server.notify("notifications/cancelled", json!({"requestId": 1000}));
    let mut server = server.with_handshake("2025-06-18");
    server.wait_until_listed(&["a"]);
    listen(&mut server, 1001);
    for round in 0..3 {
        let listed = result(&mut server, 1002 + round, "tools/list", json!({}));
        assert_eq!(listed["resultType"], "complete");
        let listed = server.result("tools/list", json!({}));
        assert!(
            listed.get("resultType").is_none() && listed.get("ttlMs").is_none(),
            "{listed}"
        );
        let called = server.call("a", json!({}));
        assert!(called.get("resultType").is_none(), "{called}");
        assert_eq!(
            result(
                &mut server,
                1012 + round,
                "tools/call",
                json!({"name": "a"})
            )["resultType"],
            "complete"
        );
        assert_eq!(server.error("server/discover", json!({}))["code"], -32601);
    }
    folder.put("b.wasm", TinyComponent::new(&["b"]).build());
    expect_list_changed(&mut server, 1001);
    let plain = server.wait_for("the session's own", |message| {
        message["method"] == LIST_CHANGED
    });
    assert!(plain.get("params").is_none(), "{plain}");
}

#[test]
fn a_subscription_sends_only_the_requested_notifications() {
    let folder = Folder::with("a.wasm", TinyComponent::new(&["a"]).build());
    let mut server = StdioServer::spawn(&folder);
    result(&mut server, 1, "tools/list", json!({}));
    listen(&mut server, 2);
    listen(&mut server, 3);
    let others = json!({"promptsListChanged": true, "resourceSubscriptions": ["file:///a"], "toolsListChanged": false});
    send(
        &mut server,
        4,
        "subscriptions/listen",
        json!({"notifications": others}),
    );
    let acknowledged = server.notification("notifications/subscriptions/acknowledged");
    // No such resource exists.
    let honoured = json!({"promptsListChanged": true});
    assert_eq!(
        acknowledged,
        json!({"notifications": honoured, "_meta": {SUBSCRIPTION: 4}})
    );
    // An id can have only one subscription.
    assert_eq!(
        ask(
            &mut server,
            3,
            "subscriptions/listen",
            json!({"notifications": {}})
        )["error"]["code"],
        -32600
    );

    folder.put("b.wasm", TinyComponent::new(&["b"]).build());
    expect_list_changed(&mut server, 2);
    expect_list_changed(&mut server, 3);
    server.notify("notifications/cancelled", json!({"requestId": 2}));
    folder.put("c.wasm", TinyComponent::new(&["c"]).build());
    expect_list_changed(&mut server, 3);
    result(&mut server, 5, "server/discover", json!({}));
    assert!(
        server.take_notifications(LIST_CHANGED).is_empty(),
        "only one subscription was left"
    );

    // When the server shuts down, it ends each open subscription once.
    let (said, code) = server.stop();
    assert_eq!(code, Some(0));
    for id in [3, 4] {
        let about = |message: &&Value| message["params"]["requestId"] == id || message["id"] == id;
        let about: Vec<&Value> = said.iter().filter(about).collect();
        assert_eq!(about.len(), 1, "{said:?}");
        assert_eq!(about[0]["result"]["_meta"][SUBSCRIPTION], id);
        assert_eq!(about[0]["result"]["resultType"], "complete");
    }
    assert!(!said.iter().any(|message| message["id"] == 2), "{said:?}");
}

#[test]
fn a_change_that_races_with_a_subscription_is_not_lost() {
    let folder = Folder::new();
    let mut server = StdioServer::spawn(&folder);
    for round in 0..10 {
        // The change happens before, during or after the acknowledgment, because the test does not
        // wait for the response.
        let params = json!({"notifications": {"toolsListChanged": true}});
        let id = send(&mut server, 10 + round, "subscriptions/listen", params);
        let name = format!("tool-{round}");
        folder.put(
            &format!("{name}.wasm"),
            TinyComponent::new(&[&name]).build(),
        );
        loop {
            let ask = 1000 + round * 100;
            let listed = result(&mut server, ask, "tools/list", json!({}));
            if listed["tools"]
                .as_array()
                .unwrap()
                .iter()
                .any(|tool| tool["name"] == *name)
            {
                break;
            }
            expect_list_changed(&mut server, id);
        }
        server.notify("notifications/cancelled", json!({"requestId": id}));
    }
}

#[test]
fn log_messages_are_sent_only_if_the_request_asks_for_them() {
    let mut server = StdioServer::spawn(&Folder::with("hostile.wasm", hostile()));
    let call = |level: Option<&str>| {
        let mut params = json!({"name": "log_flood", "arguments": {"n": 3}});
        if let Some(level) = level {
            params["_meta"] = json!({"io.modelcontextprotocol/logLevel": level});
        }
        params
    };
    for (id, level, lines) in [
        (1, None, 0),
        (2, Some("info"), 3),
        (3, Some("warning"), 0),
        (4, Some("debug"), 3),
    ] {
        result(&mut server, id, "tools/call", call(level));
        let logged = server.take_notifications("notifications/message");
        assert_eq!(logged.len(), lines, "{level:?}");
        for line in logged {
            assert_eq!(
                (&line["level"], &line["logger"]),
                (&json!("info"), &json!("log_flood"))
            );
            assert!(
                line["data"].as_str().unwrap().starts_with("line "),
                "{line}"
            );
        }
    }
}

#[test]
fn a_session_sets_its_log_level_and_gets_no_log_messages_before_it_is_initialized() {
    let folder = Folder::with("hostile.wasm", hostile());
    let mut server = StdioServer::spawn(&folder);
    let initialized = server.send_initialize("2025-06-18");
    assert_eq!(initialized["capabilities"]["logging"], json!({}));
    let lines = |server: &mut StdioServer| {
        server.call("log_flood", json!({"n": 2}));
        server.take_notifications("notifications/message").len()
    };
    assert_eq!(lines(&mut server), 0, "not ready yet");
    server.notify("notifications/initialized", json!({}));
    assert_eq!(lines(&mut server), 2);
    for (level, expected) in [("notice", 0), ("debug", 2), ("emergency", 0), ("info", 2)] {
        assert_eq!(
            server.result("logging/setLevel", json!({"level": level})),
            json!({})
        );
        assert_eq!(lines(&mut server), expected, "{level}");
    }
    for level in [json!("loud"), json!(7), Value::Null] {
        assert_eq!(
            server.error("logging/setLevel", json!({"level": level}))["code"],
            -32602
        );
    }
}

#[test]
fn a_stateless_call_reports_progress_and_can_be_cancelled() {
    let mut server = StdioServer::spawn(&Folder::with("hostile.wasm", hostile()));
    let params =
        json!({"name": "progress", "arguments": {"n": 3}, "_meta": {"progressToken": "t"}});
    assert_eq!(
        result_text(&result(&mut server, 1, "tools/call", params)),
        "3 steps"
    );
    let reports = server.take_notifications("notifications/progress");
    assert_eq!(
        reports
            .iter()
            .map(|report| report["progress"].as_f64().unwrap())
            .collect::<Vec<_>>(),
        [1.0, 2.0, 3.0]
    );
    send(
        &mut server,
        2,
        "tools/call",
        json!({"name": "loop_forever", "_meta": {"progressToken": 2}}),
    );
    server.notification("notifications/progress");
    server.notify("notifications/cancelled", json!({"requestId": 2}));
    result(&mut server, 3, "server/discover", json!({}));
    let (said, _) = server.stop();
    assert!(!said.iter().any(|message| message["id"] == 2), "{said:?}");
}

#[test]
fn a_trace_is_passed_on_to_the_guest() {
    let folder = Folder::with("hostile.wasm", hostile());
    let mut server = StdioServer::spawn(&folder);
    let trace = "0af7651916cd43dd8448eb211c80319c";
    let meta = json!({"traceparent": format!("00-{trace}-00f067aa0ba902b7-01"), "tracestate": "a=1", "baggage": "b=2"});
    let seen = result_text(&result(
        &mut server,
        1,
        "tools/call",
        json!({"name": "environment", "_meta": meta}),
    ));
    assert!(
        seen.contains(&format!("TRACEPARENT=00-{trace}-")) && !seen.contains("00f067aa0ba902b7"),
        "{seen}"
    );
    assert!(
        seen.contains("TRACESTATE=a=1") && seen.contains("BAGGAGE=b=2"),
        "{seen}"
    );
    for none in [json!({}), json!({"traceparent": "nonsense"})] {
        let seen = result_text(&result(
            &mut server,
            2,
            "tools/call",
            json!({"name": "environment", "_meta": none}),
        ));
        assert!(!seen.contains("TRACE"), "{seen}");
    }
    let failing = json!({"name": "panic", "_meta": {"traceparent": format!("00-{trace}-00f067aa0ba902b7-01")}});
    result(&mut server, 3, "tools/call", failing);
    let line = server.log.wait_for("crashed");
    assert!(
        line.contains(trace) && line.contains("parent_id=\"00f067aa0ba902b7\""),
        "{line}"
    );
}

#[test]
fn the_samples_work_without_a_session() {
    let folder = Folder::with("calculator.wasm", sample("calculator"));
    let mut server = StdioServer::spawn(&folder);
    let called = result(
        &mut server,
        1,
        "tools/call",
        json!({"name": "calculate_sum", "arguments": {"a": 1, "b": 2}}),
    );
    assert_eq!(called["structuredContent"]["sum"], 3.0);
}
