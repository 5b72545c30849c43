//! Checks every flag of the table against the output to a client. A row with a wrong value fails,
//! and so does a flag that nothing depends on.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Map, Value, json};
use toolbay_model::{
    CallFailure, CallReply, CallResult, ContentBlock, ContentBody, EmbeddedResource, JsonText,
    ListedResource, MediaContent, QuestionKind, QuestionRound, ResourceContent, ResourceItem,
    ResourceLink, SchemaViolation, TargetKind, Tool, ToolOutput,
};

use super::{Revision, RevisionFeatures};
use crate::dispatch::dispatcher;
use crate::exchange::outbox;
use crate::host::caller::Caller;
use crate::host::interface::Host as _;
use crate::host::request_state::RequestStates;
use crate::protocol::capabilities::CapabilityNames;
use crate::protocol::jsonrpc;
use crate::protocol::question_encoding;
use crate::response::call_response;
use crate::response::definition_encoding;
use crate::response::result_encoding;
use crate::session::client_session::{Session, SessionChannel, SessionLife};
use crate::testing::stub_host::{self, Stub};
use crate::testing::test_peer::Peer;
use crate::testing::test_questions;
use crate::transport::http;
use crate::transport::http::test_client::TestHttpClient;

/// Returns the messages that a client of `revision` receives for `method`: in a session if the
/// revision has sessions, otherwise without one.
async fn ask(revision: Revision, method: &str, params: Value) -> Vec<Value> {
    ask_with(revision, method, params, true).await
}

/// Like [`ask`]. If `with_session` is false, the client does not start a session.
async fn ask_with(
    revision: Revision,
    method: &str,
    mut params: Value,
    with_session: bool,
) -> Vec<Value> {
    let host = Stub::new();
    let caller = Arc::new(Caller::local(host.client(Caller::LOCAL)));
    let session = Session::new(
        host.clone(),
        Arc::clone(&caller),
        host.options().request_quota(true),
        SessionChannel::Shared,
        SessionLife::default(),
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
async fn result(revision: Revision, method: &str, params: Value) -> Option<Value> {
    let received = ask(revision, method, params).await;
    received
        .into_iter()
        .find(|message| message["id"] == 1)
        .and_then(|message| message.get("result").cloned())
}

/// A call without a capability that the tool needs, after `to_response` has handled it.
fn missing_capability(revision: Revision) -> i32 {
    let missing =
        CallFailure::MissingCapabilities(Map::from_iter([("sampling".to_owned(), json!({}))]));
    call_response::to_response(
        CallResult {
            result: Err(missing),
            usage: None,
        },
        TargetKind::Tool,
        revision,
        false,
    )
    .unwrap_err()
    .code
}

fn wrong_arguments_are_a_result(revision: Revision) -> bool {
    let violation = SchemaViolation {
        pointer: "/a".into(),
        message: "no".into(),
    };
    let answer = CallResult {
        result: Err(CallFailure::InvalidArguments {
            violations: vec![violation],
            example: None,
        }),
        usage: None,
    };
    call_response::to_response(answer, TargetKind::Tool, revision, false).is_ok()
}

/// Returns blocks whose form depends on the revision, as JSON.
fn shaped(revision: Revision) -> Vec<Value> {
    let block = |body| ContentBlock {
        body,
        audience: Vec::new(),
        priority: None,
        last_modified: Some("2026-01-02".to_owned()),
    };
    let link = ResourceLink {
        uri: "a:b".into(),
        name: "b".into(),
        title: None,
        description: None,
        mime_type: None,
        size: None,
    };
    let audio = MediaContent {
        data: Bytes::from_static(b"a"),
        mime_type: "audio/wav".into(),
    };
    let content = vec![
        block(ContentBody::Audio(audio)),
        block(ContentBody::ResourceLink(link)),
    ];
    let result = result_encoding::tool_result(
        ToolOutput {
            content,
            ..ToolOutput::default()
        },
        revision,
    );
    result["content"].as_array().unwrap().clone()
}

fn structured(revision: Revision, value: Value) -> bool {
    let output = ToolOutput {
        structured: Some(value),
        ..ToolOutput::default()
    };
    result_encoding::tool_result(output, revision).contains_key("structuredContent")
}

fn listed(revision: Revision) -> Value {
    serde_json::to_value(definition_encoding::tool(&stub_host::tool("a"), revision)).unwrap()
}

fn lists_any_output_schema(revision: Revision) -> bool {
    let tool = Tool {
        output_schema: Some(json!({"type": "array"}).into()),
        ..Tool::clone(&stub_host::tool("a"))
    };
    serde_json::to_value(definition_encoding::tool(&tool, revision))
        .unwrap()
        .get("outputSchema")
        .is_some()
}

async fn takes_batches(revision: Revision) -> bool {
    let host = Stub::new();
    let caller = Arc::new(Caller::local(host.client(Caller::LOCAL)));
    let session = Session::new(
        host.clone(),
        Arc::clone(&caller),
        host.options().request_quota(true),
        SessionChannel::Shared,
        SessionLife::default(),
    );
    session
        .negotiated
        .send_modify(|negotiated| negotiated.revision = Some(revision));
    let (outbox, messages) = outbox::channel();
    let batch = br#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#;
    dispatcher::receive(&session, &caller, jsonrpc::decode(batch), &outbox).await;
    messages.recv().await.unwrap().text.starts_with(b"[")
}

async fn error_has_no_id(revision: Revision) -> bool {
    if !revision.features().sessions {
        let client = TestHttpClient::new(Stub::new(), http::HttpOptions::default()).await;
        let version = format!("Mcp-Protocol-Version: {revision}\r\n");
        let refused = client.exchange("POST", &version, "{").await;
        client.stop().await;
        return refused.status == 400
            && refused.body.get("error").is_some()
            && refused.body.get("id").is_none();
    }
    let host = Stub::new();
    let caller = Arc::new(Caller::local(host.client(Caller::LOCAL)));
    let session = Session::new(
        host.clone(),
        caller,
        host.options().request_quota(true),
        SessionChannel::Shared,
        SessionLife::default(),
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
async fn status(revision: Revision, method: &str, with_headers: bool) -> u16 {
    let client = TestHttpClient::new(Stub::new(), http::HttpOptions::default()).await;
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
async fn opens_with_an_event(revision: Revision) -> bool {
    if !revision.features().sessions {
        return false;
    }
    let client = TestHttpClient::new(Stub::new(), http::HttpOptions::default()).await;
    let session = client.session(revision).await;
    let first = client.events(&session).await.first().await;
    client.stop().await;
    first == "id: 0-0\nretry: 1000\ndata:"
}

/// Returns the capabilities that the server declares.
async fn capabilities(revision: Revision) -> Value {
    if revision.features().discover {
        return result(revision, "server/discover", json!({}))
            .await
            .unwrap()["capabilities"]
            .clone();
    }
    let hello = json!({"protocolVersion": revision.as_str(), "capabilities": {}, "clientInfo": {}});
    let begun = ask_with(revision, "initialize", hello, false).await;
    begun[0]["result"]["capabilities"].clone()
}

async fn completes_with_context(revision: Revision) -> bool {
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
async fn not_found(revision: Revision) -> i64 {
    let code = async |method| {
        let received = ask(revision, method, json!({"uri": "test://nothing"})).await;
        let error = received.iter().find(|message| message["id"] == 1).unwrap()["error"].clone();
        error["code"].as_i64().unwrap()
    };
    let read = code("resources/read").await;
    if revision.features().session_methods {
        assert_eq!(code("resources/subscribe").await, read);
    }
    read
}

/// Checks the members that all kinds of definitions share: titles, icons and `_meta`. Also checks
/// the contents of resources.
async fn same_in_all_definitions(revision: Revision) {
    let features = revision.features();
    let (prompt, resource) = (stub_host::prompt("a"), stub_host::listed("a:b"));
    let definitions = [
        serde_json::to_value(definition_encoding::prompt(&prompt, revision)).unwrap(),
        serde_json::to_value(definition_encoding::listed_resource(&resource, revision)).unwrap(),
        serde_json::to_value(definition_encoding::template(&resource, revision)).unwrap(),
    ];
    for definition in &definitions {
        let has = |member: &str| definition.get(member).is_some();
        assert_eq!(
            (has("title"), has("icons"), has("_meta")),
            (features.titles, features.icons, features.definition_meta),
            "{definition}"
        );
    }
    assert_eq!(
        definitions[0]["arguments"][0].get("title").is_some(),
        features.titles
    );
    assert_eq!(
        definitions[1]["annotations"].get("lastModified").is_some(),
        features.last_modified
    );
    let read = result(
        revision,
        "resources/read",
        json!({"uri": stub_host::URIS[0]}),
    )
    .await
    .unwrap();
    assert_eq!(
        read["contents"][0].get("_meta").is_some(),
        features.definition_meta
    );
    assert_eq!(read.get("ttlMs").is_some(), features.caching_hints);
    for list in [
        "prompts/list",
        "resources/list",
        "resources/templates/list",
        "skills/list",
    ] {
        let list = result(revision, list, json!({})).await.unwrap();
        assert_eq!(list.get("ttlMs").is_some(), features.caching_hints);
    }
    for (method, uri) in [
        ("skills/get", stub_host::SKILLS[0]),
        ("resources/directory/read", stub_host::FOLDER),
    ] {
        let read = result(revision, method, json!({"uri": uri})).await.unwrap();
        assert_eq!(
            read.get("ttlMs").is_some(),
            features.caching_hints,
            "{method}"
        );
    }
}

/// Checks that the members of MCP Apps are present in every revision, even if it has no `_meta` in
/// definitions.
fn apps_go_with_any_revision(revision: Revision) {
    let ui = json!({"ui": {"resourceUri": "ui://a/b"}, "ui/resourceUri": "ui://a/b"});
    let mut meta = ui.as_object().unwrap().clone();
    meta.insert("example.com/x".into(), 1.into());
    let tool = Tool {
        meta: Some(JsonText::new(&json!(meta))),
        ..Tool::clone(&stub_host::tool("a"))
    };
    let listed = ListedResource {
        meta: tool.meta.clone(),
        ..ListedResource::clone(&stub_host::listed("ui://a/b"))
    };
    let resource = EmbeddedResource {
        uri: "ui://a/b".into(),
        mime_type: None,
        content: ResourceContent::Text(String::new()),
    };
    let item = ResourceItem {
        resource,
        meta: meta.clone(),
    };
    let seen = [
        serde_json::to_value(definition_encoding::tool(&tool, revision)).unwrap(),
        serde_json::to_value(definition_encoding::listed_resource(&listed, revision)).unwrap(),
        result_encoding::resource_result(vec![item], revision)["contents"][0].clone(),
    ];
    for seen in seen {
        let expected = if revision.features().definition_meta {
            json!(meta)
        } else {
            ui.clone()
        };
        assert_eq!(seen["_meta"], expected);
    }
}

/// Returns the parameters of a question in the form of the revision.
fn asked(revision: Revision, kind: QuestionKind) -> Map<String, Value> {
    question_encoding::request_params(&test_questions::question("k", kind), revision)
        .unwrap()
        .unwrap_or_default()
}

/// Returns whether a plugin's question is part of a result.
async fn asks_in_result(revision: Revision) -> bool {
    let states = RequestStates::in_memory(&[7; 32]).unwrap();
    let host = Stub::scripted(states, |_| {
        let questions = vec![test_questions::question("k", QuestionKind::Roots)];
        Some(Ok(CallReply::Questions(QuestionRound {
            questions,
            ..QuestionRound::default()
        })))
    });
    let mut peer = Peer::declaring(host, revision, test_questions::everything()).await;
    peer.call().await;
    peer.receive().await["result"]
        .get("inputRequests")
        .is_some()
}

/// Returns the flags of the revision as a client observes them.
async fn observed(revision: Revision) -> RevisionFeatures {
    let hello = json!({"protocolVersion": revision.as_str(), "capabilities": {}, "clientInfo": {}});
    let begun = ask_with(Revision::NEWEST_SESSION, "initialize", hello, false).await;
    let agreed = begun
        .first()
        .map(|answer| answer["result"]["protocolVersion"].clone());
    let list = result(revision, "tools/list", json!({})).await.unwrap();
    let listen = ask(
        revision,
        "subscriptions/listen",
        json!({"notifications": {}}),
    )
    .await;
    let called = ask(
        revision,
        "tools/call",
        json!({"name": "a", "_meta": {"progressToken": 7}}),
    )
    .await;
    let progress = called
        .iter()
        .find(|message| message["method"] == "notifications/progress")
        .unwrap();
    let (tool, blocks) = (listed(revision), shaped(revision));
    let in_session = result(revision, "ping", json!({})).await.is_some();
    assert_eq!(
        result(revision, "logging/setLevel", json!({"level": "info"}))
            .await
            .is_some(),
        in_session
    );
    for method in ["resources/subscribe", "resources/unsubscribe"] {
        let answered = result(revision, method, json!({"uri": stub_host::URIS[0]})).await;
        assert_eq!(answered.is_some(), in_session, "{method}");
    }
    same_in_all_definitions(revision).await;
    apps_go_with_any_revision(revision);
    assert!(
        capabilities(revision).await["extensions"]
            .get("io.modelcontextprotocol/ui")
            .is_some()
    );
    assert_eq!(
        capabilities(revision).await["resources"],
        json!({"subscribe": true, "listChanged": true})
    );
    assert_eq!(
        lists_any_output_schema(revision),
        structured(revision, json!([]))
    );
    let declared: CapabilityNames = serde_json::from_value(test_questions::everything()).unwrap();
    let (answerable, form) = (
        declared.answerable(revision),
        asked(revision, QuestionKind::Form),
    );
    assert_eq!(
        form.contains_key("mode"),
        answerable.contains(QuestionKind::Url)
    );
    RevisionFeatures {
        date: revision.as_str(),
        sessions: agreed == Some(revision.as_str().into()),
        session_methods: in_session,
        discover: result(revision, "server/discover", json!({}))
            .await
            .is_some(),
        subscriptions: listen
            .iter()
            .any(|message| message["method"] == "notifications/subscriptions/acknowledged"),
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
        completions: capabilities(revision).await.get("completions").is_some(),
        completion_context: completes_with_context(revision).await,
        not_found_code: not_found(revision).await != i64::from(jsonrpc::INVALID_PARAMS),
        forms: answerable.contains(QuestionKind::Form),
        elicitation_modes: answerable.contains(QuestionKind::Url),
        rich_forms: form["requestedSchema"]["properties"]["name"]
            .get("default")
            .is_some(),
        elicitation_ids: asked(revision, QuestionKind::Url).contains_key("elicitationId"),
        sampling_tools: answerable.contains(QuestionKind::SamplingWithTools),
        input_requests: asks_in_result(revision).await,
        errors_without_id: error_has_no_id(revision).await,
        invalid_arguments_are_results: wrong_arguments_are_a_result(revision),
        result_type: list.get("resultType").is_some(),
        caching_hints: list.get("ttlMs").is_some(),
        capability_code: missing_capability(revision) == call_response::MISSING_CAPABILITY,
        tasks: becomes_a_task(revision, json!({"task": {}})).await,
        tasks_extension: capabilities(revision).await["extensions"]
            .get("io.modelcontextprotocol/tasks")
            .is_some(),
        http_headers: status(revision, "tools/list", false).await != 200,
        http_not_found: status(revision, "no/such", true).await == 404,
        polling: opens_with_an_event(revision).await,
    }
}

/// Returns whether the result of a call with these members is a task.
async fn becomes_a_task(revision: Revision, members: Value) -> bool {
    let mut params = json!({"name": "a"});
    params
        .as_object_mut()
        .unwrap()
        .extend(members.as_object().unwrap().clone());
    result(revision, "tools/call", params)
        .await
        .is_some_and(|result| result.get("task").is_some())
}

#[tokio::test]
async fn every_flag_changes_behaviour() {
    for revision in Revision::ALL {
        assert_eq!(observed(revision).await, *revision.features(), "{revision}");
    }
}
