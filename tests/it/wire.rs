//! The framing of messages in lines: invalid requests get an error, and the connection stays open.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::support::{
    Folder, ProgramLog, StdioServer, TinyComponent, ToolbayCommand, error_kind_and_text, hostile,
};

/// Returns the next message that is an error, with or without an id.
fn next_error(server: &mut StdioServer) -> Value {
    server.wait_for("an error", |message| message.get("error").is_some())
}

#[test]
fn unreadable_messages_get_an_error_and_the_connection_stays_open() {
    let mut server = StdioServer::start(&Folder::new());
    let lines: [(&[u8], i32); 10] = [
        (b"{", -32700),
        (b"hello", -32700),
        (
            b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}{}",
            -32700,
        ),
        (b"\xff\xfe", -32700),
        (b"7", -32600),
        (b"[]", -32600),
        (b"{\"id\":7,\"method\":\"ping\"}", -32600),
        (
            b"{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}",
            -32600,
        ),
        (
            b"{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"ping\"}",
            -32600,
        ),
        (b"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":7}", -32600),
    ];
    for (line, code) in lines {
        server.send(line);
        let answer = next_error(&mut server);
        assert_eq!(
            answer["error"]["code"],
            code,
            "{}: {answer}",
            String::from_utf8_lossy(line)
        );
        assert_eq!(server.result("ping", json!({})), json!({}));
    }
}

#[test]
fn the_id_of_an_error_without_a_request_depends_on_the_revision() {
    for (revision, id) in [("2025-06-18", Some(Value::Null)), ("2025-11-25", None)] {
        let mut server = StdioServer::spawn(&Folder::new()).with_handshake(revision);
        server.send("{");
        assert_eq!(next_error(&mut server).get("id"), id.as_ref(), "{revision}");
    }
}

#[test]
fn a_line_that_is_too_long_gets_an_error_and_the_next_one_is_read() {
    let folder = Folder::new();
    let mut server = StdioServer::start_with_config(&folder, "[server]\nrequest_size = \"1KiB\"");
    let long = |length: usize| json!({"jsonrpc": "2.0", "id": 1000, "method": "ping", "params": {"x": "x".repeat(length)}});
    for length in [1024, 100_000, 10_000_000] {
        server.send(long(length).to_string());
        let error = next_error(&mut server);
        assert_eq!(error["error"]["code"], -32600);
        assert_eq!(
            error["error"]["message"],
            "the message is larger than 1.0 KiB (to allow more, raise server.request_size)",
            "{length} bytes"
        );
        assert_eq!(server.result("ping", json!({})), json!({}));
    }
    server.send(long(900).to_string());
    server.wait_for_response(1000);
}

#[test]
fn the_id_of_a_message_that_cannot_be_read_is_in_its_error() {
    let mut server =
        StdioServer::start_with_config(&Folder::new(), "[server]\nrequest_size = \"1KiB\"");
    let long = "x".repeat(100_000);
    for line in [
        r#"{"jsonrpc":"2.0","id":700,"method":"tools/call","params":{"name":"a","arguments":{"a":NaN}}}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":700,"method":"ping","params":{"a":01}}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":700,"method":"ping","params":{"a":"cut off"#.to_owned(),
        // The official SDKs write the id last.
        format!(r#"{{"method":"ping","params":{{"id":1,"x":"\",\"id\":2,{long}"}},"jsonrpc":"2.0","id":700}}"#),
    ] {
        server.send(line);
        let answer = server.wait_for_response(700);
        assert!(answer.get("error").is_some(), "{answer}");
    }
    server
        .send(b"{\"jsonrpc\":\"2.0\",\"id\":700,\"method\":\"ping\",\"params\":{\"a\":\"\xff\"}}");
    assert_eq!(server.wait_for_response(700)["error"]["code"], -32700);
    server.send(r#"{"jsonrpc":"2.0","id":7e2,"method":"ping"}"#);
    assert_eq!(server.receive("the answer to the ping")["id"], 700.0);
}

#[test]
fn the_default_lets_a_megabyte_through() {
    let folder = Folder::with("hostile.wasm", hostile());
    let mut server = StdioServer::start(&folder);
    let text = "ä\u{1f600}\"\\\n\t".repeat(60_000);
    assert_eq!(server.text("echo", json!({"text": text})), text);
}

#[test]
fn crlf_line_ends_and_blank_lines_are_accepted() {
    let mut server = StdioServer::start(&Folder::new());
    server.send("\r\n\n   \n\t\r\n{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"ping\"}\r");
    let answer = server.receive("the answer to the ping");
    assert_eq!(answer, json!({"jsonrpc": "2.0", "id": "a", "result": {}}));
}

#[test]
fn unknown_methods_and_unknown_tools() {
    let mut server =
        StdioServer::start(&Folder::with("a.wasm", TinyComponent::new(&["a"]).build()));
    server.wait_until_listed(&["a"]);
    for method in ["resources/lists", "prompts/put", "tools", "initialized", ""] {
        let error = server.error(method, json!({}));
        assert_eq!(
            error,
            json!({"code": -32601, "message": format!("Method not found: {method}")})
        );
    }
    let error = server.error("tools/call", json!({"name": "b"}));
    assert_eq!(error, json!({"code": -32602, "message": "Unknown tool: b"}));
    assert_eq!(server.text("a", json!({})), "fine");
}

#[test]
fn a_malformed_call_is_an_error_of_the_protocol() {
    let mut server =
        StdioServer::start(&Folder::with("a.wasm", TinyComponent::new(&["a"]).build()));
    server.wait_until_listed(&["a"]);
    let malformed = [
        json!({}),
        json!([]),
        json!(["a"]),
        json!({"name": 7}),
        json!({"name": "a", "arguments": ["x"]}),
        json!({"name": "a", "_meta": 7}),
    ];
    for params in malformed {
        let error = server.error("tools/call", params.clone());
        assert_eq!(error["code"], -32602, "{params}: {error}");
    }
    assert_eq!(
        server.result("tools/call", json!({"name": "a"}))["content"][0]["text"],
        "fine"
    );
}

#[test]
fn unexpected_notifications_and_responses_are_ignored() {
    let mut server = StdioServer::start(&Folder::new());
    for method in [
        "notifications/initialized",
        "notifications/roots/list_changed",
        "notifications/whatever",
        "ping",
    ] {
        server.notify(method, json!({}));
    }
    server.notify("notifications/cancelled", json!({"requestId": 77}));
    server.notify("notifications/cancelled", json!({"requestId": []}));
    server.notify("notifications/cancelled", json!({}));
    server.send(json!({"jsonrpc": "2.0", "id": 99, "result": {}}).to_string());
    server.send(
        json!({"jsonrpc": "2.0", "id": 99, "error": {"code": 1, "message": "no"}}).to_string(),
    );
    let id = server.request("ping", json!({}));
    assert_eq!(
        server.receive("the answer to the ping")["id"],
        id,
        "nothing else was answered"
    );
}

#[test]
fn batches_are_accepted_only_in_the_revision_that_has_them() {
    let folder = Folder::with("a.wasm", TinyComponent::new(&["a"]).build());
    let batch = json!([
        {"jsonrpc": "2.0", "id": "p", "method": "ping"},
        {"jsonrpc": "2.0", "method": "notifications/whatever"},
        {"jsonrpc": "2.0", "id": "c", "method": "tools/call", "params": {"name": "a"}},
        {"jsonrpc": "2.0", "id": "u", "method": "tools/call", "params": {"name": "b"}},
        {"jsonrpc": "2.0", "id": "i", "method": "initialize", "params": {"protocolVersion": "2025-03-26"}},
        7
    ]);
    let mut server = StdioServer::spawn(&folder).with_handshake("2025-03-26");
    server.wait_until_listed(&["a"]);
    server.send(batch.to_string());
    let answers = server.receive("the answers to the batch");
    let by_id = |id: &str| {
        answers
            .as_array()
            .unwrap()
            .iter()
            .find(|answer| answer["id"] == id)
            .unwrap()
    };
    assert_eq!(answers.as_array().unwrap().len(), 5, "{answers}");
    assert_eq!(by_id("p")["result"], json!({}));
    assert_eq!(by_id("c")["result"]["content"][0]["text"], "fine");
    assert_eq!(by_id("u")["error"]["message"], "Unknown tool: b");
    assert_eq!(by_id("i")["error"]["code"], -32600);
    // A batch of notifications has no response.
    server.send(json!([{"jsonrpc": "2.0", "method": "notifications/whatever"}]).to_string());
    let id = server.request("ping", json!({}));
    assert_eq!(server.receive("the answer to the ping")["id"], id);

    for revision in ["2024-11-05", "2025-06-18", "2025-11-25"] {
        let mut server = StdioServer::spawn(&folder).with_handshake(revision);
        server.send(batch.to_string());
        assert_eq!(
            next_error(&mut server)["error"]["code"],
            -32600,
            "{revision}"
        );
        assert_eq!(server.result("ping", json!({})), json!({}));
    }
}

#[test]
fn a_duplicate_id_of_a_running_request_is_rejected() {
    let folder = Folder::with("hostile.wasm", hostile());
    folder.put("hostile.toml", folder.create_gate());
    let mut server = StdioServer::start(&folder);
    let id = server.start_call_with_progress("wait_for_gate", json!({}));
    server.notification("notifications/progress");
    let again =
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "count"}});
    server.send(again.to_string());
    let answer = server.wait_for_response(id);
    assert_eq!(
        answer["error"],
        json!({"code": -32600, "message": "a request with this id is already in progress"})
    );
    folder.open_gate();
    assert_eq!(
        server.finish_call(id)["content"][0]["text"],
        "build-marker-0001 "
    );
    // The id is free again.
    server.send(again.to_string());
    assert_eq!(server.finish_call(id)["content"][0]["text"], "1");
}

#[test]
fn at_the_end_of_input_the_server_responds_to_running_calls_and_ends() {
    let folder = Folder::with("hostile.wasm", hostile());
    folder.put("hostile.toml", folder.create_gate());
    let mut server = StdioServer::start(&folder);
    let ids: Vec<u64> = (0..5)
        .map(|_| server.start_call_with_progress("wait_for_gate", json!({})))
        .collect();
    for _ in &ids {
        server.notification("notifications/progress");
    }
    server.close_input();
    folder.open_gate();
    let (said, code) = server.stop();
    let mut answered: Vec<u64> = said
        .iter()
        .filter_map(|message| message["id"].as_u64())
        .collect();
    answered.sort_unstable();
    assert_eq!((answered, code), (ids, Some(0)));
}

#[test]
fn a_last_line_without_a_line_feed_is_read() {
    let folder = Folder::with("a.wasm", TinyComponent::new(&["a"]).build());
    let mut server = StdioServer::start(&folder);
    server.send_raw(r#"{"jsonrpc":"2.0","id":"last","method":"ping"}"#);
    let (said, code) = server.stop();
    // A notification that the list has changed may follow.
    assert!(
        said.iter().any(|message| message["id"] == "last"),
        "{said:?}"
    );
    assert_eq!(code, Some(0));
}

#[test]
fn a_call_that_never_ends_is_stopped_after_the_grace_period() {
    let folder = Folder::with("hostile.wasm", hostile());
    let mut server = StdioServer::start_with_config(&folder, "[server]\ngrace_period = \"100ms\"");
    server.start_call_with_progress("loop_forever", json!({}));
    server.start_call_with_progress("sleep_hour", json!({}));
    server.notification("notifications/progress");
    server.notification("notifications/progress");
    let (said, code) = server.stop();
    let answers: Vec<&Value> = said
        .iter()
        .filter(|message| message.get("id").is_some())
        .collect();
    assert_eq!(answers.len(), 2, "{said:?}");
    for answer in answers {
        let (kind, text) = error_kind_and_text(&answer["result"]);
        assert_eq!(
            (kind.as_str(), text.as_str()),
            (
                "cancelled",
                "The call was stopped because the server is shutting down."
            )
        );
    }
    assert_eq!(code, Some(0));
    server
        .log
        .wait_for("stopped calls that were still running when the grace period ended");
}

#[test]
fn the_calls_of_a_killed_client_are_stopped() {
    let folder = Folder::with("hostile.wasm", hostile());
    folder.put(
        "hostile.toml",
        "[limits]\nfuel = 1_000_000_000_000\ntimeout = \"10m\"",
    );
    // With this grace period, a server that waits for its end fails the test.
    std::fs::write(
        folder.sibling_path("toolbay.toml"),
        "[server]\ngrace_period = \"10m\"",
    )
    .unwrap();
    for (input, output) in [pipes(), sockets()] {
        let (mut command, _folder) = ToolbayCommand::new(&folder).args(["serve"]).into_parts();
        let mut child = command
            .stdin(input.1)
            .stdout(output.1)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // The command holds the server's ends of the streams.
        drop(command);
        let log = ProgramLog::follow(child.stderr.take().unwrap());
        let mut input = File::from(input.0);
        let mut output = BufReader::new(File::from(output.0));
        let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "0"}});
        for (id, method, params) in [
            (0, "initialize", hello),
            (
                1,
                "tools/call",
                json!({"name": "loop_forever", "_meta": {"progressToken": 1}}),
            ),
            (
                2,
                "tools/call",
                json!({"name": "sleep_hour", "_meta": {"progressToken": 2}}),
            ),
        ] {
            writeln!(
                input,
                "{}",
                json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
            )
            .unwrap();
            // Waits for the response, or for the progress notification that shows that the call
            // runs.
            output.read_line(&mut String::new()).unwrap();
        }
        drop((input, output));
        log.wait_for_end();
        assert_eq!(child.wait().unwrap().code(), Some(0), "{}", log.text());
    }
}

/// A stream from the test to the server and one back: the test's end of each, then the server's.
type Streams = ((OwnedFd, OwnedFd), (OwnedFd, OwnedFd));

fn pipes() -> Streams {
    let input = std::io::pipe().unwrap();
    let output = std::io::pipe().unwrap();
    (
        (input.1.into(), input.0.into()),
        (output.0.into(), output.1.into()),
    )
}

/// Like the streams that Node.js creates for its child processes.
fn sockets() -> Streams {
    let pair = || {
        UnixStream::pair()
            .map(|(ours, theirs)| (ours.into(), theirs.into()))
            .unwrap()
    };
    (pair(), pair())
}

#[test]
fn a_signal_shuts_the_server_down_cleanly() {
    for signal in ["TERM", "INT"] {
        let mut server = StdioServer::start(&Folder::new());
        server.result("ping", json!({}));
        assert!(
            Command::new("kill")
                .args(["-s", signal, &server.pid().to_string()])
                .status()
                .unwrap()
                .success()
        );
        // The input stays open: the signal ends the server.
        let (_, code) = server.wait_for_exit();
        assert_eq!(code, Some(0), "SIG{signal}");
    }
}
