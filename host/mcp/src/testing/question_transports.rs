//! Questions and their answers over every transport.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio_util::sync::CancellationToken;
use toolbay_model::{CallReply, QuestionKind, QuestionRound};

use crate::host::request_state::RequestStates;
use crate::protocol::revision::Revision;
use crate::testing::stub_host::StubServer;
use crate::testing::test_http_client::TestHttpClient;
use crate::testing::test_questions::{all_capabilities, question, text_reply};
use crate::transport::http::HttpOptions;
use crate::transport::stdio;

/// A host whose tool requests the client's roots.
fn host() -> Arc<StubServer> {
    StubServer::scripted(RequestStates::in_memory(&[7; 32]).unwrap(), |call| {
        Some(Ok(match call.journal.answers.get("k") {
            Some(answer) => text_reply(answer),
            None if call.answerable.contains(QuestionKind::Roots) => {
                CallReply::Questions(QuestionRound {
                    questions: vec![question("k", QuestionKind::Roots)],
                    journal: toolbay_model::CallJournal::clone(&call.journal),
                })
            }
            None => {
                let missing = QuestionKind::capabilities(&[QuestionKind::Roots]);
                return Some(Err(toolbay_model::CallFailure::MissingCapabilities(
                    missing,
                )));
            }
        }))
    })
}

fn call(id: u64, meta: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "a", "_meta": meta}})
}

fn answer(question: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": question["id"], "result": {"roots": []}})
}

fn text(response: &Value) -> &str {
    response["result"]["content"][0]["text"]
        .as_str()
        .unwrap_or_else(|| panic!("{response}"))
}

#[tokio::test]
async fn over_streamable_http_the_question_is_on_the_stream_of_its_call() {
    let client = TestHttpClient::new(host(), HttpOptions::default()).await;
    for revision in [
        Revision::V2025_03_26,
        Revision::V2025_06_18,
        Revision::V2025_11_25,
    ] {
        let session = client.session_with(revision, all_capabilities()).await;
        let other = client.session_with(revision, all_capabilities()).await;
        let mut stream = client
            .open_events("/mcp", "POST", &session, &call(1, &json!({})).to_string())
            .await;
        let question = stream.next().await;
        assert_eq!(question["method"], "roots/list");
        // An answer from another session is accepted and ignored.
        let mut accepted = Vec::new();
        for header in [&other, &session, &session] {
            accepted.push(client.post(header, &answer(&question)).await.status);
        }
        assert_eq!(accepted, [202; 3]);
        let response = stream.next().await;
        assert_eq!(
            (&response["id"], text(&response)),
            (&json!(1), r#"{"roots":[]}"#)
        );
    }
    // In a batch, for revisions with batches.
    let session = client
        .session_with(Revision::V2025_03_26, all_capabilities())
        .await;
    let batch = json!([call(1, &json!({})), call(2, &json!({}))]);
    let mut stream = client
        .open_events("/mcp", "POST", &session, &batch.to_string())
        .await;
    let answers = json!([answer(&stream.next().await), answer(&stream.next().await)]);
    assert_eq!(client.post(&session, &answers).await.status, 202);
    assert_eq!(stream.next().await.as_array().unwrap().len(), 2);
    client.stop().await;
}

#[tokio::test]
async fn a_client_that_closes_the_stream_of_a_call_and_does_not_come_back_ends_it() {
    // Only a write detects that the client no longer reads.
    let soon = Duration::from_millis(20);
    let options = HttpOptions {
        stream_keep_alive: soon,
        resume: soon,
        ..HttpOptions::default()
    };
    let client = TestHttpClient::new(host(), options).await;
    let session = client
        .session_with(Revision::V2025_11_25, all_capabilities())
        .await;
    let mut stream = client
        .open_events("/mcp", "POST", &session, &call(1, &json!({})).to_string())
        .await;
    let question = stream.next().await;
    drop(stream);
    // The id of the call is free as soon as the server has detected this. The stream is no longer
    // retained.
    loop {
        let mut stream = client
            .open_events("/mcp", "POST", &session, &call(1, &json!({})).to_string())
            .await;
        if stream.is_stream().await {
            assert_ne!(stream.next().await["id"], question["id"]);
            break;
        }
    }
    client.stop().await;
}

#[tokio::test]
async fn without_a_session_a_question_is_a_result_and_a_missing_capability_a_status() {
    let client = TestHttpClient::new(host(), HttpOptions::default()).await;
    let headers = "Mcp-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: a\r\n";
    let meta = |capabilities: Value| {
        json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": capabilities,
        })
    };
    let asked = client
        .post(headers, &call(1, &meta(all_capabilities())))
        .await;
    assert_eq!(
        (asked.status, &asked.body["result"]["resultType"]),
        (200, &json!("input_required"))
    );
    let mut again = call(2, &meta(all_capabilities()));
    again["params"]["requestState"] = asked.body["result"]["requestState"].clone();
    again["params"]["inputResponses"] = json!({"k": {"roots": []}});
    assert_eq!(
        text(&client.post(headers, &again).await.body),
        r#"{"roots":[]}"#
    );
    let used = client.post(headers, &again).await;
    assert_eq!(
        (used.status, &used.body["error"]["data"]["reason"]),
        (200, &json!("used"))
    );
    let missing = client
        .post(headers, &call(3, &meta(json!({"sampling": {}}))))
        .await;
    assert_eq!(
        (missing.status, &missing.body["error"]["code"]),
        (400, &json!(-32021))
    );
    assert_eq!(
        missing.body["error"]["data"],
        json!({"requiredCapabilities": {"roots": {}}})
    );
    // The response matches no request.
    let stray = json!({"jsonrpc": "2.0", "id": "x", "result": {}});
    assert_eq!(
        client
            .post("Mcp-Protocol-Version: 2026-07-28\r\n", &stray)
            .await
            .status,
        202
    );
    client.stop().await;
}

#[tokio::test]
async fn over_http_with_sse_questions_are_on_the_only_stream() {
    let client = TestHttpClient::new(
        host(),
        HttpOptions {
            sse: true,
            ..HttpOptions::default()
        },
    )
    .await;
    let mut stream = client.open_events("/sse", "GET", "", "").await;
    let path = format!("/{}", stream.data().await);
    let post = async |message: Value| {
        client
            .exchange_at(&path, "POST", "", &message.to_string())
            .await
            .status
    };
    let hello = json!({"protocolVersion": "2024-11-05", "capabilities": all_capabilities(), "clientInfo": {}});
    assert_eq!(
        post(json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello})).await,
        202
    );
    stream.next().await;
    post(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
    assert_eq!(post(call(1, &json!({}))).await, 202);
    let question = stream.next().await;
    assert_eq!(post(answer(&question)).await, 202);
    assert_eq!(text(&stream.next().await), r#"{"roots":[]}"#);
    drop(stream);
    client.stop().await;
}

#[tokio::test]
async fn over_standard_streams_questions_and_answers_are_lines() {
    let (near, far) = tokio::io::duplex(1 << 16);
    let (reader, writer) = tokio::io::split(far);
    let serving = tokio::spawn(stdio::serve(
        host().server(),
        Box::pin(reader),
        Box::pin(writer),
        CancellationToken::new(),
    ));
    let (reader, mut writer) = tokio::io::split(near);
    let mut lines = BufReader::new(reader).lines();
    let hello = json!({"protocolVersion": "2025-11-25", "capabilities": all_capabilities(), "clientInfo": {}});
    for message in [
        json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        call(1, &json!({})),
    ] {
        writer
            .write_all(format!("{message}\n").as_bytes())
            .await
            .unwrap();
    }
    let mut next =
        async || serde_json::from_str::<Value>(&lines.next_line().await.unwrap().unwrap()).unwrap();
    next().await;
    let question = next().await;
    writer
        .write_all(format!("{}\n", answer(&question)).as_bytes())
        .await
        .unwrap();
    assert_eq!(text(&next().await), r#"{"roots":[]}"#);
    drop((writer, lines));
    serving.await.unwrap().unwrap();
}
