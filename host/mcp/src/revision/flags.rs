//! Checks every flag of the table against what a client receives. A row that claims something false fails, and so does
//! a flag that nothing depends on.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Map, Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use toolbay_model::{Answer, Body, Content, Failure, Media, Output, ResourceLink, Tool, Violation};

use super::{Features, Revision};
use crate::caller::Caller;
use crate::host::Host as _;
use crate::session::{Channel, Life, Session};
use crate::stub::{self, Stub};
use crate::{dispatch, http, jsonrpc, outbox, outcome, shape};

/// What a client of `revision` receives for `method`: in a session if the revision has sessions, otherwise without one.
async fn ask(revision: Revision, method: &str, params: Value) -> Vec<Value> {
    ask_with(revision, method, params, true).await
}

/// The same. If `with_session` is false, the client does not start a session.
async fn ask_with(revision: Revision, method: &str, mut params: Value, with_session: bool) -> Vec<Value> {
    let host = Stub::new();
    let caller = Arc::new(Caller::local(host.client(Caller::LOCAL)));
    let session =
        Session::new(host.clone(), Arc::clone(&caller), host.options().intake(true), Channel::Shared, Life::default());
    let (outbox, mut messages) = outbox::channel();
    let mut send = Vec::new();
    if revision.features().sessions {
        if with_session {
            let hello = json!({"protocolVersion": revision.as_str(), "capabilities": {}, "clientInfo": {}});
            send.push(json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello}));
            send.push(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        }
    } else {
        params["_meta"]["io.modelcontextprotocol/protocolVersion"] = revision.as_str().into();
        params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
    }
    send.push(json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}));
    for message in send {
        dispatch::receive(&session, &caller, jsonrpc::decode(message.to_string().as_bytes()), &outbox).await;
    }
    drop(outbox);
    session.end(std::time::Duration::from_secs(5), std::future::pending()).await;
    drop(session);
    let mut received = Vec::new();
    while let Some(message) = messages.recv().await {
        received.push(serde_json::from_slice(&message.text).unwrap());
    }
    received
}

/// The result for `method`, if there is one.
async fn result(revision: Revision, method: &str, params: Value) -> Option<Value> {
    let received = ask(revision, method, params).await;
    received.into_iter().find(|message| message["id"] == 1).and_then(|message| message.get("result").cloned())
}

/// A call without a capability that the tool needs, after `outcome` has handled it.
fn missing_capability(revision: Revision) -> i32 {
    let missing = Failure::MissingCapabilities(Map::from_iter([("sampling".to_owned(), json!({}))]));
    outcome::outcome(Answer { result: Err(missing), usage: None }, revision, false).unwrap_err().code
}

fn wrong_arguments_are_a_result(revision: Revision) -> bool {
    let violation = Violation { pointer: "/a".into(), message: "no".into() };
    let answer = Answer { result: Err(Failure::InvalidArguments(vec![violation])), usage: None };
    outcome::outcome(answer, revision, false).is_ok()
}

/// A block of each kind, as JSON of the revision.
fn shaped(revision: Revision) -> Vec<Value> {
    let block =
        |body| Content { body, audience: Vec::new(), priority: None, last_modified: Some("2026-01-02".to_owned()) };
    let link = ResourceLink {
        uri: "a:b".into(),
        name: "b".into(),
        title: None,
        description: None,
        mime_type: None,
        size: None,
    };
    let audio = Media { data: Bytes::from_static(b"a"), mime_type: "audio/wav".into() };
    let content = vec![block(Body::Audio(audio)), block(Body::ResourceLink(link))];
    let result = shape::output(Output { content, ..Output::default() }, revision);
    result["content"].as_array().unwrap().clone()
}

fn structured(revision: Revision, value: Value) -> bool {
    let output = Output { structured: Some(value), ..Output::default() };
    shape::output(output, revision).contains_key("structuredContent")
}

fn listed(revision: Revision) -> Value {
    serde_json::to_value(shape::tool(&stub::tool("a"), revision)).unwrap()
}

fn lists_any_output_schema(revision: Revision) -> bool {
    let tool = Tool { output_schema: Some(json!({"type": "array"}).into()), ..Tool::clone(&stub::tool("a")) };
    serde_json::to_value(shape::tool(&tool, revision)).unwrap().get("outputSchema").is_some()
}

async fn takes_batches(revision: Revision) -> bool {
    let host = Stub::new();
    let caller = Arc::new(Caller::local(host.client(Caller::LOCAL)));
    let session =
        Session::new(host.clone(), Arc::clone(&caller), host.options().intake(true), Channel::Shared, Life::default());
    session.negotiated.send_modify(|negotiated| negotiated.revision = Some(revision));
    let (outbox, mut messages) = outbox::channel();
    let batch = br#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#;
    dispatch::receive(&session, &caller, jsonrpc::decode(batch), &outbox).await;
    messages.recv().await.unwrap().text.starts_with(b"[")
}

fn error_has_no_id(revision: Revision) -> bool {
    let host = Stub::new();
    let caller = Arc::new(Caller::local(host.client(Caller::LOCAL)));
    let session = Session::new(host.clone(), caller, host.options().intake(true), Channel::Shared, Life::default());
    // Only a session knows its revision before it can read a message.
    session.negotiated.send_modify(|negotiated| {
        negotiated.revision = Some(revision).filter(|revision| revision.features().sessions);
    });
    let error = session.encode_error(&jsonrpc::Error::new(jsonrpc::PARSE_ERROR, "no"));
    serde_json::from_slice::<Value>(&error).unwrap().get("id").is_none()
}

/// The status of a request over HTTP, with or without the headers that repeat parts of its body.
async fn status(revision: Revision, method: &str, with_headers: bool) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, stop) = (listener.local_addr().unwrap(), CancellationToken::new());
    let serving = tokio::spawn(http::serve(Stub::new(), http::Options::default(), listener, stop.clone()));
    let exchange = async |headers: String, body: Value| {
        let body = body.to_string();
        let request = format!(
            "POST /mcp HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\nAccept: \
             application/json, text/event-stream\r\n{headers}Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    };
    let date = revision.as_str();
    let mut headers = String::new();
    let mut params = json!({});
    if revision.features().sessions {
        let hello = json!({"protocolVersion": date, "capabilities": {}, "clientInfo": {}});
        let answer =
            exchange(String::new(), json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello})).await;
        let id = answer.lines().find_map(|line| line.strip_prefix("mcp-session-id: ")).unwrap().trim();
        headers = format!("Mcp-Session-Id: {id}\r\n");
    } else {
        params = json!({"_meta": {
            "io.modelcontextprotocol/protocolVersion": date,
            "io.modelcontextprotocol/clientCapabilities": {},
        }});
    }
    if with_headers {
        headers = format!("{headers}Mcp-Protocol-Version: {date}\r\nMcp-Method: {method}\r\n");
    }
    let answer = exchange(headers, json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})).await;
    stop.cancel();
    serving.await.unwrap().unwrap();
    answer.split(' ').nth(1).unwrap().parse().unwrap()
}

/// The flags of the revision as a client observes them.
async fn observed(revision: Revision) -> Features {
    let hello = json!({"protocolVersion": revision.as_str(), "capabilities": {}, "clientInfo": {}});
    let begun = ask_with(Revision::NEWEST_SESSION, "initialize", hello, false).await;
    let agreed = begun.first().map(|answer| answer["result"]["protocolVersion"].clone());
    let list = result(revision, "tools/list", json!({})).await.unwrap();
    let listen = ask(revision, "subscriptions/listen", json!({"notifications": {}})).await;
    let called = ask(revision, "tools/call", json!({"name": "a", "_meta": {"progressToken": 7}})).await;
    let progress = called.iter().find(|message| message["method"] == "notifications/progress").unwrap();
    let (tool, blocks) = (listed(revision), shaped(revision));
    let in_session = result(revision, "ping", json!({})).await.is_some();
    assert_eq!(result(revision, "logging/setLevel", json!({"level": "info"})).await.is_some(), in_session);
    assert_eq!(lists_any_output_schema(revision), structured(revision, json!([])));
    Features {
        date: revision.as_str(),
        sessions: agreed == Some(revision.as_str().into()),
        session_methods: in_session,
        discover: result(revision, "server/discover", json!({})).await.is_some(),
        subscriptions: listen.iter().any(|message| message["method"] == "notifications/subscriptions/acknowledged"),
        batches: takes_batches(revision).await,
        annotations: tool.get("annotations").is_some(),
        audio: blocks[0]["type"] == "audio",
        progress_message: progress["params"].get("message").is_some(),
        titles: tool.get("title").is_some(),
        structured: structured(revision, json!({})),
        any_structure: structured(revision, json!([])),
        resource_links: blocks[1]["type"] == "resource_link",
        last_modified: blocks[0].get("annotations").is_some(),
        definition_meta: tool.get("_meta").is_some(),
        icons: tool.get("icons").is_some(),
        errors_without_id: error_has_no_id(revision),
        invalid_arguments_are_results: wrong_arguments_are_a_result(revision),
        result_type: list.get("resultType").is_some(),
        caching_hints: list.get("ttlMs").is_some(),
        capability_code: missing_capability(revision) == outcome::MISSING_CAPABILITY,
        http_headers: status(revision, "tools/list", false).await != 200,
        http_not_found: status(revision, "no/such", true).await == 404,
    }
}

#[tokio::test]
async fn every_flag_changes_behaviour() {
    for revision in Revision::ALL {
        assert_eq!(observed(revision).await, *revision.features(), "{revision}");
    }
}
