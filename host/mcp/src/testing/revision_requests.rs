//! Requests of a client of each revision to the stub host, and the properties of their responses.

use std::sync::Arc;

use serde_json::{Value, json};
use toolbay_model::{CallReply, QuestionKind, QuestionRound};

use crate::dispatch::dispatcher;
use crate::exchange::outbox;
use crate::host::caller::Caller;
use crate::host::request_state::RequestStates;
use crate::protocol::jsonrpc;
use crate::protocol::revision::Revision;
use crate::session::client_session::{Session, SessionChannel, ShutdownTokens};
use crate::testing::stub_host::StubServer;
use crate::testing::test_http_client::TestHttpClient;
use crate::testing::test_peer::TestPeer;
use crate::testing::test_questions;
use crate::transport::http;

/// Returns the messages that a client of `revision` receives for `method`: in a session if the
/// revision has sessions, otherwise without one.
pub(super) async fn send_request(revision: Revision, method: &str, params: Value) -> Vec<Value> {
    send_request_with(revision, method, params, true).await
}

/// Like [`send_request`]. If `with_session` is false, the client does not start a session.
pub(super) async fn send_request_with(
    revision: Revision,
    method: &str,
    mut params: Value,
    with_session: bool,
) -> Vec<Value> {
    let host = StubServer::new();
    let caller = Arc::new(Caller::local(host.client(Caller::LOCAL)));
    let session = Session::new(
        host.server(),
        Arc::clone(&caller),
        host.options().request_quota(true),
        SessionChannel::Shared,
        ShutdownTokens::default(),
    );
    let (outbox, messages) = outbox::channel();
    let mut send = Vec::new();
    if revision.features().sessions {
        if with_session {
            let hello =
                json!({"protocolVersion": revision.as_str(), "capabilities": {}, "clientInfo": {}});
            send.push(json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello}));
            send.push(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        }
    } else {
        params["_meta"]["io.modelcontextprotocol/protocolVersion"] = revision.as_str().into();
        params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
    }
    send.push(json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}));
    for message in send {
        dispatcher::receive(
            &session,
            &caller,
            jsonrpc::decode(message.to_string().as_bytes()),
            &outbox,
        )
        .await;
    }
    drop(outbox);
    session
        .end(std::time::Duration::from_secs(5), std::future::pending())
        .await;
    drop(session);
    let mut received = Vec::new();
    while let Some(message) = messages.recv().await {
        received.push(serde_json::from_slice(&message.text).unwrap());
    }
    received
}

/// Returns the result for `method`, if there is one.
pub(super) async fn result(revision: Revision, method: &str, params: Value) -> Option<Value> {
    let received = send_request(revision, method, params).await;
    received
        .into_iter()
        .find(|message| message["id"] == 1)
        .and_then(|message| message.get("result").cloned())
}

pub(super) async fn takes_batches(revision: Revision) -> bool {
    let host = StubServer::new();
    let caller = Arc::new(Caller::local(host.client(Caller::LOCAL)));
    let session = Session::new(
        host.server(),
        Arc::clone(&caller),
        host.options().request_quota(true),
        SessionChannel::Shared,
        ShutdownTokens::default(),
    );
    session
        .negotiated
        .send_modify(|negotiated| negotiated.revision = Some(revision));
    let (outbox, messages) = outbox::channel();
    let batch = br#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#;
    dispatcher::receive(&session, &caller, jsonrpc::decode(batch), &outbox).await;
    messages.recv().await.unwrap().text.starts_with(b"[")
}

pub(super) async fn error_has_no_id(revision: Revision) -> bool {
    if !revision.features().sessions {
        let client = TestHttpClient::new(StubServer::new(), http::HttpOptions::default()).await;
        let version = format!("Mcp-Protocol-Version: {revision}\r\n");
        let refused = client.exchange("POST", &version, "{").await;
        client.stop().await;
        return refused.status == 400
            && refused.body.get("error").is_some()
            && refused.body.get("id").is_none();
    }
    let host = StubServer::new();
    let caller = Arc::new(Caller::local(host.client(Caller::LOCAL)));
    let session = Session::new(
        host.server(),
        caller,
        host.options().request_quota(true),
        SessionChannel::Shared,
        ShutdownTokens::default(),
    );
    session
        .negotiated
        .send_modify(|negotiated| negotiated.revision = Some(revision));
    let error = session.encode_error(&jsonrpc::Error::new(jsonrpc::PARSE_ERROR, "no"));
    serde_json::from_slice::<Value>(&error)
        .unwrap()
        .get("id")
        .is_none()
}

/// Returns the status of a request over HTTP, with or without the headers that repeat parts of its
/// body.
pub(super) async fn status(revision: Revision, method: &str, with_headers: bool) -> u16 {
    let client = TestHttpClient::new(StubServer::new(), http::HttpOptions::default()).await;
    let date = revision.as_str();
    let mut headers = String::new();
    let mut params = json!({});
    if revision.features().sessions {
        headers = client.session(revision).await;
    } else {
        params = json!({"_meta": {
            "io.modelcontextprotocol/protocolVersion": date,
            "io.modelcontextprotocol/clientCapabilities": {},
        }});
    }
    if with_headers {
        headers = format!("{headers}Mcp-Protocol-Version: {date}\r\nMcp-Method: {method}\r\n");
    }
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let status = client.post(&headers, &body).await.status;
    client.stop().await;
    status
}

/// Returns whether the stream of a session starts with an event without a message.
pub(super) async fn opens_with_an_event(revision: Revision) -> bool {
    if !revision.features().sessions {
        return false;
    }
    let client = TestHttpClient::new(StubServer::new(), http::HttpOptions::default()).await;
    let session = client.session(revision).await;
    let first = client.events(&session).await.first().await;
    client.stop().await;
    first == "id: 0-0\nretry: 1000\ndata:"
}

/// Returns the capabilities that the server declares.
pub(super) async fn capabilities(revision: Revision) -> Value {
    if revision.features().discover {
        return result(revision, "server/discover", json!({}))
            .await
            .unwrap()["capabilities"]
            .clone();
    }
    let hello = json!({"protocolVersion": revision.as_str(), "capabilities": {}, "clientInfo": {}});
    let begun = send_request_with(revision, "initialize", hello, false).await;
    begun[0]["result"]["capabilities"].clone()
}

pub(super) async fn completes_with_context(revision: Revision) -> bool {
    let params = json!({
        "ref": {"type": "ref/prompt", "name": "a"},
        "argument": {"name": "y", "value": "1"},
        "context": {"arguments": {"x": "known"}},
    });
    let completed = result(revision, "completion/complete", params)
        .await
        .unwrap();
    completed["completion"]["values"][0]
        .as_str()
        .unwrap()
        .contains("known")
}

/// Returns the error code for a resource that does not exist. Checks that all methods use it.
pub(super) async fn not_found(revision: Revision) -> i64 {
    let code = async |method| {
        let received = send_request(revision, method, json!({"uri": "test://nothing"})).await;
        let error = received.iter().find(|message| message["id"] == 1).unwrap()["error"].clone();
        error["code"].as_i64().unwrap()
    };
    let read = code("resources/read").await;
    if revision.features().session_methods {
        assert_eq!(code("resources/subscribe").await, read);
    }
    read
}

/// Returns whether a plugin's question is part of a result.
pub(super) async fn asks_in_result(revision: Revision) -> bool {
    let states = RequestStates::in_memory(&[7; 32]).unwrap();
    let host = StubServer::scripted(states, |_| {
        let questions = vec![test_questions::question("k", QuestionKind::Roots)];
        Some(Ok(CallReply::Questions(QuestionRound {
            questions,
            ..QuestionRound::default()
        })))
    });
    let mut peer =
        TestPeer::with_capabilities(host, revision, test_questions::all_capabilities()).await;
    peer.call().await;
    peer.receive().await["result"]
        .get("inputRequests")
        .is_some()
}

/// Returns whether the result of a call with these members is a task.
pub(super) async fn becomes_a_task(revision: Revision, members: Value) -> bool {
    let mut params = json!({"name": "a"});
    params
        .as_object_mut()
        .unwrap()
        .extend(members.as_object().unwrap().clone());
    result(revision, "tools/call", params)
        .await
        .is_some_and(|result| result.get("task").is_some())
}
