//! Which rights apply: those of each request, whatever else happens in its session.

use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use super::auth::{
    ISSUER, KEY, RESOURCE, bearer, jwks, jwt, names, plugins, resource, resource_with,
};
use crate::support::{HttpResponse, HttpServer, HttpSession, LIST_CHANGED, TinyComponent};

/// Rate limits that no test reaches.
const NO_RATES: &str = "[rate_limit]\ncalls = 100_000\nper = \"1m\"\n[caller_rate_limit]\ncalls = 100_000\nper = \"1m\"";

/// Returns two tokens of one subject: one can see the tools `time.*`, the other one every tool.
fn low_and_high() -> [String; 2] {
    ["mcp time", "mcp admin"].map(|scope| bearer(&jwt("one", KEY, json!({"scope": scope}))))
}

#[test]
fn two_scopes_of_one_subject_never_mix_in_a_session() {
    let server = resource_with(&plugins(), NO_RATES);
    let [low, high] = low_and_high();
    let session = server.start_session_with_headers("2025-11-25", &[("Authorization", &low)]);
    let ask = |token: &str, method: &str, params: Value| {
        let message = json!({"jsonrpc": "2.0", "id": format!("{token}{params}"), "method": method, "params": params});
        let headers = [
            ("Mcp-Session-Id", session.id.as_str()),
            ("Authorization", token),
        ];
        server
            .post(&headers, message.to_string().as_bytes())
            .response_message()
    };
    let unknown = json!({"code": -32602, "message": "Unknown tool: secret"});
    let over = AtomicBool::new(false);
    std::thread::scope(|threads| {
        let privileged = threads.spawn(|| {
            for n in 0.. {
                let called = ask(
                    &high,
                    "tools/call",
                    json!({"name": "secret", "_meta": {"n": n}}),
                );
                assert!(called.get("result").is_some(), "{called}");
                let listed = ask(&high, "tools/list", json!({}));
                assert_eq!(
                    names(&listed["result"]),
                    ["secret", "time.now", "time.zone"]
                );
                if over.load(Ordering::Relaxed) {
                    return;
                }
            }
        });
        for n in 0..400 {
            let called = ask(
                &low,
                "tools/call",
                json!({"name": "secret", "_meta": {"n": n}}),
            );
            assert_eq!(called["error"], unknown, "call {n}: {called}");
            let listed = ask(&low, "tools/list", json!({}));
            assert_eq!(
                names(&listed["result"]),
                ["time.now", "time.zone"],
                "list {n}"
            );
        }
        over.store(true, Ordering::Relaxed);
        privileged.join().unwrap();
    });
}

#[test]
fn a_waiting_request_keeps_its_rights() {
    let folder = plugins();
    // A list waits until this plugin is loaded or removed.
    folder.put(
        "hung.wasm",
        TinyComponent::new(&["hung"])
            .before_list("(loop $for-ever (br $for-ever))")
            .build(),
    );
    std::fs::write(folder.sibling_path("keys.json"), jwks(&[("one", KEY)])).unwrap();
    let config = format!(
        "[server]\nstartup_wait = \"10m\"\n[describe]\nfuel = 1_000_000_000_000\ntimeout = \"10m\"\n\
         [http]\nstream_keep_alive = \"100ms\"\n[http.oauth]\nresource = \"{RESOURCE}\"\n\
         authorization_servers = [\"{ISSUER}\"]\njwks = \"keys.json\"\n\
         [http.oauth.tools]\ntime = [\"time.*\"]\nadmin = [\"*\"]"
    );
    let server = HttpServer::start_with_config(&folder, &config);
    let [low, high] = low_and_high();
    let session = server.start_session_with_headers("2025-11-25", &[("Authorization", &low)]);
    let waiting = session.request("tools/list", json!({}));
    assert!(waiting.is_stream(), "there is no answer yet");
    let ping = json!({"jsonrpc": "2.0", "id": "p", "method": "ping"}).to_string();
    let headers = [
        ("Mcp-Session-Id", session.id.as_str()),
        ("Authorization", high.as_str()),
    ];
    assert_eq!(server.post(&headers, ping.as_bytes()).status, 200);
    folder.remove("hung.wasm");
    assert_eq!(
        names(&waiting.response_message()["result"]),
        ["time.now", "time.zone"]
    );
}

#[test]
fn a_batch_and_a_stream_of_2024_have_the_rights_of_their_requests() {
    let server = resource_with(&plugins(), &format!("{NO_RATES}\n[http]\nsse = true"));
    let [low, high] = low_and_high();
    let session = server.start_session_with_headers("2025-03-26", &[("Authorization", &high)]);
    let batch = json!([
        {"jsonrpc": "2.0", "id": 1, "method": "tools/list"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "secret"}},
    ]);
    let headers = [
        ("Mcp-Session-Id", session.id.as_str()),
        ("Authorization", low.as_str()),
    ];
    let answers = server
        .post(&headers, batch.to_string().as_bytes())
        .response_message();
    let of = |id: u64| {
        answers
            .as_array()
            .unwrap()
            .iter()
            .find(|answer| answer["id"] == id)
            .unwrap()
    };
    assert_eq!(names(&of(1)["result"]), ["time.now", "time.zone"]);
    assert_eq!(of(2)["error"]["message"], "Unknown tool: secret");

    let mut stream = server.get("/sse", &[("Authorization", &high)]);
    let (_, address) = stream.next_event().unwrap();
    let hello = crate::support::initialize("2024-11-05").to_string();
    let post = |token: &str, message: &str| {
        let headers = [
            ("Authorization", token),
            ("Content-Type", "application/json"),
        ];
        assert_eq!(
            server
                .request("POST", &format!("/{address}"), &headers, message.as_bytes())
                .status,
            202
        );
    };
    post(&high, &hello);
    stream.next_message().unwrap();
    let call =
        json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "secret"}})
            .to_string();
    post(&low, &call);
    assert_eq!(
        stream.next_message().unwrap()["error"]["message"],
        "Unknown tool: secret"
    );
    post(&high, &call);
    assert!(stream.next_message().unwrap().get("result").is_some());
}

/// Reads the stream until it has reported `changes` changes, and then until `comments` comments
/// came. Returns the total number of reported changes. A comment comes when a stream has been
/// quiet.
fn count_changes(stream: &mut HttpResponse, changes: usize, comments: u32) -> usize {
    let mut told = 0;
    let mut quiet = 0;
    while told < changes || quiet < comments {
        let (kind, data) = stream.next_event().unwrap();
        if !kind.is_empty() {
            assert!(data.contains(LIST_CHANGED), "{data}");
            told += 1;
        } else if told >= changes {
            quiet += 1;
        }
    }
    told
}

fn subscribe(server: &HttpServer, token: &str) -> HttpResponse {
    let params = json!({"notifications": {"toolsListChanged": true}});
    let mut stream =
        server.post_stateless("subscriptions/listen", params, &[("Authorization", token)]);
    assert_eq!(
        stream.next_message().unwrap()["method"],
        "notifications/subscriptions/acknowledged"
    );
    stream
}

#[test]
fn a_change_is_notified_only_to_clients_that_can_see_it() {
    let folder = plugins();
    let server = resource_with(
        &folder,
        &format!("{NO_RATES}\n[http]\nstream_keep_alive = \"100ms\""),
    );
    let tokens = low_and_high();
    let sessions = tokens.each_ref().map(|token| {
        server.start_session_with_headers("2025-11-25", &[("Authorization", token.as_str())])
    });
    // The first list that a client gets includes the changes until then.
    for session in &sessions {
        session.tool_names();
    }
    let mut streams = sessions.each_ref().map(HttpSession::open_stream);
    let mut subscriptions = tokens.each_ref().map(|token| subscribe(&server, token));
    // A comment comes when a stream has been quiet: it is open and waits.
    for stream in streams.iter_mut().chain(&mut subscriptions) {
        assert_eq!(count_changes(stream, 0, 1), 0);
    }
    let change = |name: &str,
                  tool: &str,
                  seen_by: [bool; 2],
                  streams: &mut [HttpResponse; 2],
                  more: &mut [HttpResponse; 2]| {
        folder.put(name, TinyComponent::new(&[tool]).build());
        while !sessions[1].tool_names().iter().any(|listed| listed == tool) {}
        for streams in [streams, more] {
            for (stream, sees) in streams.iter_mut().zip(seen_by) {
                assert_eq!(
                    count_changes(stream, usize::from(sees), 3),
                    usize::from(sees),
                    "{tool}"
                );
            }
        }
    };
    change(
        "b.wasm",
        "hidden",
        [false, true],
        &mut streams,
        &mut subscriptions,
    );
    change(
        "c.wasm",
        "time.more",
        [true, true],
        &mut streams,
        &mut subscriptions,
    );
    assert_eq!(
        sessions[0].tool_names(),
        ["time.more", "time.now", "time.zone"]
    );

    // A stream that is opened later reports only changes that its rights show and that the client
    // has not listed.
    let [low, _] = streams;
    low.close();
    folder.put("d.wasm", TinyComponent::new(&["hidden.too"]).build());
    while !sessions[1]
        .tool_names()
        .iter()
        .any(|listed| listed == "hidden.too")
    {}
    assert_eq!(count_changes(&mut sessions[0].open_stream(), 0, 3), 0);
    folder.put("e.wasm", TinyComponent::new(&["time.late"]).build());
    while !sessions[0]
        .tool_names()
        .iter()
        .any(|listed| listed == "time.late")
    {}
    assert_eq!(count_changes(&mut sessions[0].open_stream(), 1, 3), 1);
}

#[test]
fn a_stream_has_the_rights_of_the_request_that_opened_it() {
    let folder = plugins();
    let server = resource_with(&folder, "[http]\nstream_keep_alive = \"100ms\"");
    let [low, high] = low_and_high();
    let session = server.start_session_with_headers("2025-11-25", &[("Authorization", &low)]);
    let mut stream = session.open_stream();
    assert_eq!(count_changes(&mut stream, 0, 1), 0);
    let with_high = [
        ("Mcp-Session-Id", session.id.as_str()),
        ("Authorization", high.as_str()),
    ];
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).to_string();
    let sees = |tool: &str| {
        let listed = server.post(&with_high, list.as_bytes()).response_message();
        names(&listed["result"]).contains(&tool)
    };
    assert!(!sees("hidden"));
    folder.put("b.wasm", TinyComponent::new(&["hidden"]).build());
    while !sees("hidden") {}
    assert_eq!(
        count_changes(&mut stream, 0, 3),
        0,
        "another request with more rights changes nothing"
    );
    let headers = [&with_high[..], &[("Accept", "text/event-stream")]].concat();
    let mut other = server.get("/mcp", &headers);
    assert_eq!(
        count_changes(&mut other, 1, 3),
        1,
        "what has changed since the client first listed with these rights"
    );
    folder.put("c.wasm", TinyComponent::new(&["hidden.too"]).build());
    assert_eq!(other.next_message().unwrap()["method"], LIST_CHANGED);
    other.close();
    assert_eq!(count_changes(&mut stream, 0, 3), 0);
}

#[test]
fn a_session_belongs_to_its_subject() {
    let server = resource();
    let [low, _] = low_and_high();
    let session = server.start_session_with_headers("2025-11-25", &[("Authorization", &low)]);
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}).to_string();
    let with = |claims: Value| {
        let token = bearer(&jwt("one", KEY, claims));
        let headers = [
            ("Mcp-Session-Id", session.id.as_str()),
            ("Authorization", token.as_str()),
        ];
        server.post(&headers, ping.as_bytes()).status
    };
    assert_eq!(with(json!({"scope": "mcp admin"})), 200);
    assert_eq!(with(json!({"sub": "somebody else"})), 404);
    assert_eq!(with(json!({"sub": null})), 404);
}
