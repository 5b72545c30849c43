//! Checks every flag of the table against the output to a client. A row with a wrong value fails,
//! and so does a flag that nothing depends on.

use bytes::Bytes;
use serde_json::{Map, Value, json};
use toolbay_model::{
    CallFailure, CallResult, ContentBlock, ContentBody, EmbeddedResource, JsonText, ListedResource,
    MediaContent, QuestionKind, ResourceContent, ResourceItem, ResourceLink, SchemaViolation,
    TargetKind, Tool, ToolOutput,
};

use crate::protocol::capabilities::CapabilityNames;
use crate::protocol::revision::{Revision, RevisionFeatures};
use crate::protocol::{jsonrpc, question_encoding};
use crate::response::{call_response, definition_encoding, result_encoding};
use crate::testing::revision_requests::{
    asks_in_result, becomes_a_task, capabilities, completes_with_context, error_has_no_id,
    not_found, opens_with_an_event, result, send_request, send_request_with, status, takes_batches,
};
use crate::testing::{stub_items, test_questions};

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
fn encoded_blocks(revision: Revision) -> Vec<Value> {
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

fn listed_tool(revision: Revision) -> Value {
    serde_json::to_value(definition_encoding::tool(&stub_items::tool("a"), revision)).unwrap()
}

fn lists_any_output_schema(revision: Revision) -> bool {
    let tool = Tool {
        output_schema: Some(json!({"type": "array"}).into()),
        ..Tool::clone(&stub_items::tool("a"))
    };
    serde_json::to_value(definition_encoding::tool(&tool, revision))
        .unwrap()
        .get("outputSchema")
        .is_some()
}

/// Checks the members that all kinds of definitions share: titles, icons and `_meta`. Also checks
/// the contents of resources.
async fn same_in_all_definitions(revision: Revision) {
    let features = revision.features();
    let prompt = stub_items::prompt("a");
    let resource = stub_items::listed_resource("a:b");
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
        json!({"uri": stub_items::URIS[0]}),
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
        ("skills/get", stub_items::SKILLS[0]),
        ("resources/directory/read", stub_items::FOLDER),
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
        ..Tool::clone(&stub_items::tool("a"))
    };
    let listed = ListedResource {
        meta: tool.meta.clone(),
        ..ListedResource::clone(&stub_items::listed_resource("ui://a/b"))
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
fn question_params(revision: Revision, kind: QuestionKind) -> Map<String, Value> {
    question_encoding::request_params(&test_questions::question("k", kind), revision)
        .unwrap()
        .unwrap_or_default()
}

/// Returns the flags of the revision as a client observes them.
async fn observed_features(revision: Revision) -> RevisionFeatures {
    let hello = json!({"protocolVersion": revision.as_str(), "capabilities": {}, "clientInfo": {}});
    let begun = send_request_with(Revision::NEWEST_SESSION, "initialize", hello, false).await;
    let agreed = begun
        .first()
        .map(|answer| answer["result"]["protocolVersion"].clone());
    let list = result(revision, "tools/list", json!({})).await.unwrap();
    let listen = send_request(
        revision,
        "subscriptions/listen",
        json!({"notifications": {}}),
    )
    .await;
    let called = send_request(
        revision,
        "tools/call",
        json!({"name": "a", "_meta": {"progressToken": 7}}),
    )
    .await;
    let progress = called
        .iter()
        .find(|message| message["method"] == "notifications/progress")
        .unwrap();
    let tool = listed_tool(revision);
    let blocks = encoded_blocks(revision);
    let in_session = result(revision, "ping", json!({})).await.is_some();
    assert_eq!(
        result(revision, "logging/setLevel", json!({"level": "info"}))
            .await
            .is_some(),
        in_session
    );
    for method in ["resources/subscribe", "resources/unsubscribe"] {
        let answered = result(revision, method, json!({"uri": stub_items::URIS[0]})).await;
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
    let declared: CapabilityNames =
        serde_json::from_value(test_questions::all_capabilities()).unwrap();
    let answerable = declared.answerable(revision);
    let form = question_params(revision, QuestionKind::Form);
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
        elicitation_ids: question_params(revision, QuestionKind::Url).contains_key("elicitationId"),
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

#[tokio::test]
async fn every_flag_changes_behaviour() {
    for revision in Revision::ALL {
        assert_eq!(
            observed_features(revision).await,
            *revision.features(),
            "{revision}"
        );
    }
}
