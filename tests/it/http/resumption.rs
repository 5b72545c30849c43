//! Streams that a client goes on with after its connection has ended.

use serde_json::json;

use crate::support::{Folder, HttpServer, HttpSession, LIST_CHANGED, Response, Tiny, hostile};

/// The stream of a session, after the event with this id.
fn resume(server: &HttpServer, session: &HttpSession<'_>, id: &str) -> Response {
    let headers = [("Accept", "text/event-stream"), ("Last-Event-ID", id)];
    server.get("/mcp", &[session.headers(), headers.to_vec()].concat())
}

/// A server with a tool that reports progress and then waits for the gate of the folder.
fn waiting(config: &str) -> (Folder, HttpServer) {
    let folder = Folder::with("hostile.wasm", hostile());
    folder.put("hostile.toml", folder.gate());
    let server = HttpServer::configured(&folder, config).ready();
    (folder, server)
}

/// Calls that tool, and waits until it waits.
fn call(session: &HttpSession<'_>) -> Response {
    let mut response = session.ask("tools/call", json!({"name": "wait_for_gate", "_meta": {"progressToken": 1}}));
    assert_eq!(response.next().unwrap()["method"], "notifications/progress");
    response
}

#[test]
fn a_call_whose_connection_ended_is_answered_on_another() {
    let (folder, server) = waiting("");
    let sessions: Vec<_> = server.with_sessions().iter().map(|revision| server.session(revision)).collect();
    let ids: Vec<String> = sessions
        .iter()
        .map(|session| {
            let response = call(session);
            let id = response.id.clone().unwrap();
            response.hang_up();
            id
        })
        .collect();
    folder.open_gate();
    for (session, id) in sessions.iter().zip(&ids) {
        let mut resumed = resume(&server, session, id);
        assert_eq!(resumed.status, 200);
        let answer = resumed.next().unwrap();
        assert!(answer["result"].is_object(), "{answer}");
        assert_eq!(resumed.next(), None, "the response is the last message");
        // A client whose connection ended while it read the response reads it again.
        assert_eq!(resume(&server, session, id).next(), Some(answer));
        assert_eq!(resume(&server, session, &resumed.id.unwrap()).next(), None);
    }
}

#[test]
fn whoever_reconnects_first_need_not_wait_for_the_old_connection() {
    let (folder, server) = waiting("");
    let session = server.session("2025-11-25");
    let mut old = call(&session);
    let id = old.id.clone().unwrap();
    let mut resumed = resume(&server, &session, &id);
    assert_eq!(old.next(), None, "it is replaced");
    // Also by one that has less of it.
    let opening = format!("{}-0", id.split_once('-').unwrap().0);
    let mut again = resume(&server, &session, &opening);
    assert_eq!(resumed.next(), None, "it is replaced, too");
    assert_eq!(again.next().unwrap()["method"], "notifications/progress");
    folder.open_gate();
    assert!(again.next().unwrap()["result"].is_object());
    assert_eq!(again.next(), None);
}

#[test]
fn a_client_that_polls_gets_the_response_in_time() {
    let (folder, server) = waiting("[http]\npoll_after = \"100ms\"");
    let session = server.session("2025-11-25");
    let mut response = call(&session);
    assert_eq!(response.next(), None, "the stream ends, and the client polls");
    let id = response.id.unwrap();
    let mut polled = resume(&server, &session, &id);
    assert_eq!(polled.next(), None, "and again");
    folder.open_gate();
    let answered = std::iter::repeat_with(|| resume(&server, &session, &id).next()).flatten().next();
    assert!(answered.unwrap()["result"].is_object());
    // Clients of older revisions do not poll.
    let session = server.session("2025-06-18");
    let mut response =
        session.ask("tools/call", json!({"name": "progress", "arguments": {"n": 3}, "_meta": {"progressToken": 1}}));
    assert!(std::iter::from_fn(|| response.next()).last().unwrap()["result"].is_object());
}

#[test]
fn streams_begin_with_an_event_only_where_clients_know_it() {
    let (folder, server) = waiting("");
    for revision in server.with_sessions() {
        let session = server.session(&revision);
        let knows = revision == "2025-11-25";
        let mut response = session.ask("tools/call", json!({"name": "wait_for_gate", "_meta": {"progressToken": 1}}));
        let first = response.event().unwrap();
        assert_eq!(first.1.is_empty(), knows, "{revision}: {first:?}");
        assert!(response.id.is_some(), "an id in any case");
        let mut stream = session.stream();
        assert_eq!(stream.event(), Some((String::new(), String::new())));
        assert_eq!(stream.id.is_some(), knows, "{revision}");
    }
    folder.open_gate();
}

#[test]
fn a_stream_belongs_to_its_session_and_to_its_caller() {
    let (folder, server) = waiting("");
    let session = server.session("2025-11-25");
    let response = call(&session);
    let id = response.id.clone().unwrap();
    response.hang_up();
    let other = server.session("2025-11-25");
    let refused = |session: &HttpSession<'_>, id: &str| {
        let response = resume(&server, session, id);
        assert_eq!(response.status, 400, "{id}");
        response.json()["error"]["message"].as_str().unwrap().to_owned()
    };
    insta::assert_snapshot!(refused(&other, &id), @"the stream of Last-Event-ID is not kept any more (http.resume), or not for this caller: repeat the request, or open a stream without that header");
    insta::assert_snapshot!(refused(&session, "nonsense"), @"Last-Event-ID must be the id of an event of this session");
    let stream = id.split_once('-').unwrap().0;
    for wrong in ["9999-0".to_owned(), format!("{stream}-9999"), "-1-0".to_owned(), format!("{id}x")] {
        drop(refused(&session, &wrong));
    }
    folder.open_gate();
    assert!(resume(&server, &session, &id).next().unwrap()["result"].is_object());
    // It ends with its session.
    assert_eq!(server.request("DELETE", "/mcp", &session.headers(), b"").status, 204);
    assert_eq!(resume(&server, &session, &id).status, 404);
}

#[test]
fn nothing_is_kept_unless_it_is_asked_for() {
    let (folder, server) = waiting("[http]\nresume = \"0s\"");
    let session = server.session("2025-11-25");
    let mut response = call(&session);
    assert_eq!(response.id, None);
    folder.open_gate();
    assert!(response.next().unwrap()["result"].is_object());
    let mut stream = session.stream();
    drop(stream.event());
    assert_eq!(stream.id, None);
    assert_eq!(resume(&server, &session, "1-0").status, 400);
}

#[test]
fn changes_that_a_connection_lost_are_repeated() {
    let folder = Folder::with("a.wasm", Tiny::new(&["a"]).build());
    let server = HttpServer::start(&folder).ready();
    let session = server.session("2025-11-25");
    let mut stream = session.stream();
    drop(stream.event());
    let opened = stream.id.clone().unwrap();
    assert_eq!(session.names(), ["a"]);
    folder.put("b.wasm", Tiny::new(&["b"]).build());
    assert_eq!(stream.next().unwrap()["method"], LIST_CHANGED);
    let changed = stream.id.clone().unwrap();
    stream.hang_up();
    // As a client does whose connection ended before the event arrived.
    let mut again = resume(&server, &session, &opened);
    assert_eq!(again.next().unwrap()["method"], LIST_CHANGED);
    again.hang_up();
    let mut stream = resume(&server, &session, &changed);
    folder.put("c.wasm", Tiny::new(&["c"]).build());
    assert_eq!(stream.next().unwrap()["method"], LIST_CHANGED);
    assert_ne!(stream.id.unwrap(), changed);
    // An id of another server opens a stream as if there were none.
    let mut stream = resume(&server, &session, "0-999");
    assert_eq!(stream.event(), Some((String::new(), String::new())));
    assert_ne!(stream.id.unwrap(), "0-999");
}
