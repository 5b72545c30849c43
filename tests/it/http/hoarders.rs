//! Clients that open many sessions and streams and send large requests: the cost is charged to
//! them, and little is stored.

use std::net::Ipv4Addr;

use serde_json::json;

use super::connections::{peak, resident};
use super::neighbour;
use crate::support::{
    Folder, HttpServer, LIST_CHANGED, TinyComponent, error_kind_and_text, hostile, initialize,
    result_text,
};

#[test]
fn large_members_of_initialize_are_not_stored() {
    let server = HttpServer::start(&Folder::with("a.wasm", TinyComponent::new(&["a"]).build()))
        .wait_until_ready();
    let before = resident(&server);
    let mut hello = initialize("2025-11-25");
    // A member of a few bytes would take hundreds of bytes as a map.
    let members: Vec<String> = (0..350_000).map(|n| format!("\"{n}\":{{}}")).collect();
    hello["params"]["capabilities"] = serde_json::from_str("{\"sampling\": {}}").unwrap();
    let hello = hello.to_string();
    let capabilities = hello.replace("\"sampling\":{}", &members.join(","));
    let info = hello.replace(
        "\"clientInfo\":{",
        &format!("\"clientInfo\":{{\"x\":[{}0],", "[[]],".repeat(700_000)),
    );
    let name = hello.replace(
        "\"clientInfo\":{",
        &format!("\"clientInfo\":{{\"title\":\"{}\",", "x".repeat(4_000_000)),
    );
    for body in [capabilities, info, name] {
        assert!(
            body.len() > 3_000_000 && body.len() < 4 << 20,
            "{}",
            body.len()
        );
        for _ in 0..20 {
            let response = server.post(&[], body.as_bytes());
            assert_eq!(response.status, 200);
            let session = response.header("mcp-session-id").unwrap().to_owned();
            let list = br#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
            assert_eq!(
                server.post(&[("Mcp-Session-Id", &session)], list).status,
                200
            );
        }
    }
    let peak = peak(&server);
    assert!(peak < before + (48 << 10), "from {before} to {peak} KiB");
}

#[test]
fn values_that_would_take_much_memory_are_not_parsed() {
    let server = HttpServer::start(&Folder::with("hostile.wasm", hostile())).wait_until_ready();
    assert_eq!(
        result_text(&server.result(
            "tools/call",
            json!({"name": "echo", "arguments": {"text": "a"}})
        )),
        "a"
    );
    let before = resident(&server);
    for values in [
        "{\"\":0},".repeat(500_000),
        "[0],".repeat(1_000_000),
        "0,".repeat(2_000_000),
    ] {
        let body = neighbour::stateless(
            "tools/call",
            json!({"name": "echo", "arguments": {"text": "a", "x": [7]}}),
        );
        let body = String::from_utf8(body).unwrap();
        let (head, body) = body.split_once("\r\n\r\n").unwrap();
        let body = body.replace("[7]", &format!("[{values}7]"));
        let length = head
            .lines()
            .find(|line| line.starts_with("Content-Length"))
            .unwrap();
        let head = head.replace(length, &format!("Content-Length: {}", body.len()));
        let response = server.send_raw(format!("{head}\r\n\r\n{body}"));
        assert_eq!(response.status, 400);
        let error = response.json()["error"].take();
        assert_eq!(error["code"], -32600);
        assert!(
            error["message"]
                .as_str()
                .unwrap()
                .contains("server.request_memory"),
            "{error}"
        );
    }
    let peak = peak(&server);
    assert!(peak < before + (48 << 10), "from {before} to {peak} KiB");
    // Deeply nested values are rejected by the parser.
    let deep = format!("{}{}", "[".repeat(1_000_000), "]".repeat(1_000_000));
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"echo","arguments":{{"text":{deep}}}}}}}"#
    );
    let session = server.start_session("2025-11-25");
    let response = server.post(&session.headers(), body.as_bytes());
    assert!(matches!(
        response.json()["error"]["code"].as_i64(),
        Some(-32600 | -32602)
    ));
}

#[test]
fn waiting_arguments_use_only_the_memory_of_their_caller() {
    let folder = Folder::with("hostile.wasm", hostile());
    folder.put("hostile.toml", folder.create_gate());
    let config = "[server]\ncalls = 1\nsuspended_calls = 0\nqueue_timeout = \"10m\"\nrequest_memory = \"64MiB\"";
    let server = HttpServer::start_with_config(&folder, config).wait_until_ready();
    let listed = server.result("tools/list", json!({}));
    assert!(listed["tools"].as_array().unwrap().len() > 3);
    // Holds the only slot.
    let mut first = server.post_stateless(
        "tools/call",
        json!({"name": "wait_for_gate", "_meta": {"progressToken": 1}}),
        &[],
    );
    assert_eq!(
        first.next_message().unwrap()["method"],
        "notifications/progress"
    );
    // Each takes about 12 of the 16 MiB that one caller may use.
    let call = json!({"name": "echo", "arguments": {"text": "a", "x": vec![0; 100_000]}});
    std::thread::scope(|threads| {
        // Which of the two waits is random.
        let waiting = threads.spawn(|| server.result("tools/call", call.clone()));
        let other = threads.spawn(|| server.result("tools/call", call.clone()));
        while !waiting.is_finished() && !other.is_finished() {
            std::thread::yield_now();
        }
        // Small calls and calls of other callers are admitted.
        let small = json!({"name": "echo", "arguments": {"text": "a"}});
        let small = threads.spawn(|| server.result("tools/call", small));
        let far = json!({"name": "echo", "arguments": {"text": "a", "x": vec![0; 100_000]}});
        let far = threads.spawn(|| {
            neighbour::ask(&server, &neighbour::stateless("tools/call", far)).response_message()
        });
        folder.open_gate();
        let results = [waiting.join().unwrap(), other.join().unwrap()];
        assert_eq!(result_text(&small.join().unwrap()), "a");
        assert_eq!(result_text(&far.join().unwrap()["result"]), "a");
        let busy: Vec<_> = results
            .iter()
            .filter(|result| result.get("isError").is_some())
            .collect();
        assert_eq!(busy.len(), 1, "{results:?}");
        let (kind, said) = error_kind_and_text(busy[0]);
        assert_eq!(kind, "busy");
        assert!(
            said.contains("16.0 MiB") && said.contains("server.request_memory"),
            "{said}"
        );
        assert!(busy[0]["_meta"]["dev.toolbay/retry-after-ms"].is_u64());
    });
}

#[test]
fn a_caller_that_opens_sessions_replaces_its_own() {
    let config = "[http]\nsessions = 10\nsessions_per_caller = 4\nsessions_per_address = 10";
    let server = HttpServer::start_with_config(&Folder::new(), config);
    let quiet = server.start_session("2025-11-25");
    let opened: Vec<String> = (0..50)
        .map(|_| neighbour::session(&server).unwrap())
        .collect();
    assert_eq!(quiet.request("ping", json!({})).status, 200);
    let open = opened
        .iter()
        .filter(|id| neighbour::ping(&server, id) == 200)
        .count();
    assert_eq!(open, 4);
    assert_eq!(
        neighbour::ping(&server, opened.last().unwrap()),
        200,
        "the newest is one of them"
    );
}

#[test]
fn all_loopback_addresses_are_one_caller() {
    let config = "[http]\nsessions = 40\nsessions_per_caller = 4\nsessions_per_address = 40";
    let server = HttpServer::start_with_config(&Folder::new(), config);
    let addresses = (1..=20).map(|last| Ipv4Addr::new(127, 0, 0, last));
    let opened: Vec<_> = addresses
        .map(|address| (address, neighbour::session_from(&server, address).unwrap()))
        .collect();
    let open = opened
        .iter()
        .filter(|(address, id)| neighbour::ping_from(&server, *address, id) == 200)
        .count();
    assert_eq!(open, 4);
}

#[test]
fn callers_of_one_address_share_its_sessions_evenly() {
    let (ada, first) = super::auth::token("ada", "");
    let (bob, second) = super::auth::token("bob", "");
    let config = format!(
        "[http]\nsessions = 100\nsessions_per_caller = 4\nsessions_per_address = 4\n{first}{second}"
    );
    let server = HttpServer::start_with_config(&Folder::new(), &config);
    let [ada, bob] = [ada, bob].map(|token| super::auth::bearer(&token));
    let ada = [("Authorization", ada.as_str())];
    let bob = [("Authorization", bob.as_str())];
    let [_one, _two, _three, last] =
        [(); 4].map(|()| server.start_session_with_headers("2025-11-25", &bob));
    // A caller without a session replaces one of the caller that has most; that caller only
    // replaces its own.
    let own = server.start_session_with_headers("2025-11-25", &ada);
    let more: Vec<_> = (0..20)
        .map(|_| server.start_session_with_headers("2025-11-25", &bob))
        .collect();
    assert_eq!(own.request("ping", json!({})).status, 200);
    assert_eq!(last.request("ping", json!({})).status, 404);
    assert_eq!(
        more.iter()
            .filter(|session| session.request("ping", json!({})).status == 200)
            .count(),
        3
    );
}

#[test]
fn a_session_has_few_streams() {
    let folder = Folder::with("a.wasm", TinyComponent::new(&["a"]).build());
    let server = HttpServer::start_with_config(&folder, "[http]\nstream_keep_alive = \"100ms\"")
        .wait_until_ready();
    let session = server.start_session("2025-11-25");
    let mut streams: Vec<_> = (0..6)
        .map(|_| {
            let mut stream = session.open_stream();
            assert_eq!(
                stream.next_event(),
                Some((String::new(), String::new())),
                "it is open"
            );
            stream
        })
        .collect();
    let mut newest = streams.split_off(2);
    for mut oldest in streams {
        while oldest.next_event().is_some() {}
    }
    folder.put("b.wasm", TinyComponent::new(&["b"]).build());
    assert_eq!(newest[3].next_message().unwrap()["method"], LIST_CHANGED);
    assert_eq!(
        newest[0].next_event(),
        Some((String::new(), String::new())),
        "it is still open"
    );
}
