//! Streams that a client resumes after its connection has ended.

use serde_json::json;

use crate::support::{
    Folder, HttpResponse, HttpServer, HttpSession, LIST_CHANGED, TinyComponent, hostile,
};

/// Resumes a stream of a session after the event with this id.
fn resume(server: &HttpServer, session: &HttpSession<'_>, id: &str) -> HttpResponse {
    let headers = [("Accept", "text/event-stream"), ("Last-Event-ID", id)];
    server.get("/mcp", &[session.headers(), headers.to_vec()].concat())
}

/// Starts a server with a tool that reports progress and then waits for the gate of the folder.
fn waiting(config: &str) -> (Folder, HttpServer) {
    let folder = Folder::with("hostile.wasm", hostile());
    folder.put("hostile.toml", folder.create_gate());
    let server = HttpServer::start_with_config(&folder, config).wait_until_ready();
    (folder, server)
}

/// Calls that tool, and waits until it waits at the gate.
fn call(session: &HttpSession<'_>) -> HttpResponse {
    let mut response = session.request(
        "tools/call",
        json!({"name": "wait_for_gate", "_meta": {"progressToken": 1}}),
    );
    assert_eq!(
        response.next_message().unwrap()["method"],
        "notifications/progress"
    );
    response
}

#[test]
fn a_call_whose_connection_ended_is_answered_on_a_new_connection() {
    let (folder, server) = waiting("");
    let sessions: Vec<_> = server
        .session_revisions()
        .iter()
        .map(|revision| server.start_session(revision))
        .collect();
    let ids: Vec<String> = sessions
        .iter()
        .map(|session| {
            let response = call(session);
            let id = response.last_event_id.clone().unwrap();
            response.close();
            id
        })
        .collect();
    folder.open_gate();
    for (session, id) in sessions.iter().zip(&ids) {
        let mut resumed = resume(&server, session, id);
        assert_eq!(resumed.status, 200);
        let answer = resumed.next_message().unwrap();
        assert!(answer["result"].is_object(), "{answer}");
        assert_eq!(
            resumed.next_message(),
            None,
            "the response is the last message"
        );
        // A client whose connection ended while it read the response reads it again.
        assert_eq!(resume(&server, session, id).next_message(), Some(answer));
        assert_eq!(
            resume(&server, session, &resumed.last_event_id.unwrap()).next_message(),
            None
        );
    }
}

#[test]
fn a_resumed_stream_replaces_the_old_connection() {
    let (folder, server) = waiting("");
    let session = server.start_session("2025-11-25");
    let mut old = call(&session);
    let id = old.last_event_id.clone().unwrap();
    let mut resumed = resume(&server, &session, &id);
    assert_eq!(old.next_message(), None, "it is replaced");
    // A client that resumes from an earlier event also replaces the connection.
    let opening = format!("{}-0", id.split_once('-').unwrap().0);
    let mut again = resume(&server, &session, &opening);
    assert_eq!(resumed.next_message(), None, "it is replaced, too");
    assert_eq!(
        again.next_message().unwrap()["method"],
        "notifications/progress"
    );
    folder.open_gate();
    assert!(again.next_message().unwrap()["result"].is_object());
    assert_eq!(again.next_message(), None);
}

#[test]
fn a_client_that_polls_gets_the_response_in_time() {
    let (folder, server) = waiting("[http]\npoll_after = \"100ms\"");
    let session = server.start_session("2025-11-25");
    let mut response = call(&session);
    assert_eq!(
        response.next_message(),
        None,
        "the stream ends, and the client polls"
    );
    let id = response.last_event_id.unwrap();
    let mut polled = resume(&server, &session, &id);
    assert_eq!(polled.next_message(), None, "and again");
    folder.open_gate();
    let answered = std::iter::repeat_with(|| resume(&server, &session, &id).next_message())
        .flatten()
        .next();
    assert!(answered.unwrap()["result"].is_object());
    // Clients of older revisions do not poll.
    let session = server.start_session("2025-06-18");
    let mut response = session.request(
        "tools/call",
        json!({"name": "progress", "arguments": {"n": 3}, "_meta": {"progressToken": 1}}),
    );
    assert!(
        std::iter::from_fn(|| response.next_message())
            .last()
            .unwrap()["result"]
            .is_object()
    );
}

#[test]
fn streams_begin_with_an_empty_event_only_in_revisions_that_define_it() {
    let (folder, server) = waiting("");
    for revision in server.session_revisions() {
        let session = server.start_session(&revision);
        let knows = revision == "2025-11-25";
        let mut response = session.request(
            "tools/call",
            json!({"name": "wait_for_gate", "_meta": {"progressToken": 1}}),
        );
        let first = response.next_event().unwrap();
        assert_eq!(first.1.is_empty(), knows, "{revision}: {first:?}");
        assert!(response.last_event_id.is_some(), "an id in any case");
        let mut stream = session.open_stream();
        assert_eq!(stream.next_event(), Some((String::new(), String::new())));
        assert_eq!(stream.last_event_id.is_some(), knows, "{revision}");
    }
    folder.open_gate();
}

#[test]
fn a_stream_belongs_to_its_session_and_to_its_caller() {
    let (folder, server) = waiting("");
    let session = server.start_session("2025-11-25");
    let response = call(&session);
    let id = response.last_event_id.clone().unwrap();
    response.close();
    let other = server.start_session("2025-11-25");
    let refused = |session: &HttpSession<'_>, id: &str| {
        let response = resume(&server, session, id);
        assert_eq!(response.status, 400, "{id}");
        response.json()["error"]["message"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    insta::assert_snapshot!(refused(&other, &id), @"the stream of Last-Event-ID is no longer stored (http.resume), or not for this caller: repeat the request, or open a stream without that header");
    let stream = id.split_once('-').unwrap().0;
    for wrong in ["9999-0".to_owned(), format!("{stream}-9999")] {
        drop(refused(&session, &wrong));
    }
    folder.open_gate();
    assert!(resume(&server, &session, &id).next_message().unwrap()["result"].is_object());
    // The stream ends with its session.
    assert_eq!(
        server
            .request("DELETE", "/mcp", &session.headers(), b"")
            .status,
        204
    );
    assert_eq!(resume(&server, &session, &id).status, 404);
}

#[test]
fn without_resumption_no_events_are_stored() {
    let (folder, server) = waiting("[http]\nresume = \"0s\"");
    let session = server.start_session("2025-11-25");
    let mut response = call(&session);
    assert_eq!(response.last_event_id, None);
    folder.open_gate();
    assert!(response.next_message().unwrap()["result"].is_object());
    let mut stream = session.open_stream();
    drop(stream.next_event());
    assert_eq!(stream.last_event_id, None);
    assert_eq!(resume(&server, &session, "1-0").status, 400);
}

#[test]
fn changes_that_a_connection_lost_are_sent_again() {
    let folder = Folder::with("a.wasm", TinyComponent::new(&["a"]).build());
    let server = HttpServer::start(&folder).wait_until_ready();
    let session = server.start_session("2025-11-25");
    let mut stream = session.open_stream();
    drop(stream.next_event());
    let opened = stream.last_event_id.clone().unwrap();
    assert_eq!(session.tool_names(), ["a"]);
    folder.put("b.wasm", TinyComponent::new(&["b"]).build());
    assert_eq!(stream.next_message().unwrap()["method"], LIST_CHANGED);
    let changed = stream.last_event_id.clone().unwrap();
    stream.close();
    // Like a client whose connection ended before the event arrived.
    let mut again = resume(&server, &session, &opened);
    assert_eq!(again.next_message().unwrap()["method"], LIST_CHANGED);
    again.close();
    let mut stream = resume(&server, &session, &changed);
    folder.put("c.wasm", TinyComponent::new(&["c"]).build());
    assert_eq!(stream.next_message().unwrap()["method"], LIST_CHANGED);
    assert_ne!(stream.last_event_id.unwrap(), changed);
    // An unknown id, such as one of another server, opens a new stream.
    for other in ["0-999", "abc", "5", "junk", "1-2x", "-1-0", "6f1ab2-7_3"] {
        let mut stream = resume(&server, &session, other);
        assert_eq!(stream.status, 200, "{other}");
        assert_eq!(
            stream.next_event(),
            Some((String::new(), String::new())),
            "{other}"
        );
        let begun = stream.last_event_id.unwrap();
        assert!(
            begun.starts_with("0-") && begun != "0-999",
            "{other}: {begun}"
        );
    }
    // The error for an unknown session takes precedence.
    let gone = [
        ("Mcp-Session-Id", "0123"),
        ("Accept", "text/event-stream"),
        ("Last-Event-ID", "abc"),
    ];
    assert_eq!(server.get("/mcp", &gone).status, 404);
}
