//! Tests that obsolete questions of tasks are withdrawn.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use toolbay_model::{CallJournal, CallReply, QuestionKind, QuestionRound};

use super::{
    CORE, EXTENSION, asking_host, begin_task, client, get_task, host, wait_for_status, wait_until,
};
use crate::host::request_state;
use crate::testing::stub_host::StubServer;
use crate::testing::test_peer::TestPeer;
use crate::testing::test_questions::question;

/// Starts a task, waits for its result, and returns the ids of the task and of the request, and its
/// question.
async fn begin_asked_task(peer: &mut TestPeer, host: &Arc<StubServer>) -> (String, u64, Value) {
    let id = begin_task(peer).await;
    let waiting = peer.request("tasks/result", json!({"taskId": id})).await;
    host.release();
    loop {
        let message = peer.receive().await;
        if message["method"] == "elicitation/create" {
            return (id, waiting, message);
        }
    }
}

/// Returns the messages until the response to this request, including it if `last` is the id of a
/// request.
async fn messages_until(peer: &mut TestPeer, last: u64) -> Vec<Value> {
    let mut messages = Vec::new();
    loop {
        let message = peer.receive().await;
        let is_last = message["id"] == last;
        messages.push(message);
        if is_last {
            return messages;
        }
    }
}

fn is_withdrawal(message: &Value, question: &Value) -> bool {
    message["method"] == "notifications/cancelled"
        && message["params"]["requestId"] == question["id"]
}

#[tokio::test]
async fn the_question_of_a_cancelled_task_is_withdrawn() {
    let host = asking_host(&[&["a"]]);
    let mut peer = client(&host, CORE).await;
    let (id, waiting, question) = begin_asked_task(&mut peer, &host).await;
    // Another client with the same caller cancels it.
    let mut other = client(&host, CORE).await;
    assert_eq!(
        other.result("tasks/cancel", json!({"taskId": id})).await["status"],
        "cancelled"
    );
    let messages = messages_until(&mut peer, waiting).await;
    assert_eq!(
        messages
            .iter()
            .filter(|message| is_withdrawal(message, &question))
            .count(),
        1,
        "{messages:?}"
    );
    let error = &messages.last().unwrap()["error"]["message"];
    assert_eq!(error, "The task was cancelled: it has no result.");
    wait_until(|| peer.session.pending.is_empty()).await;
    // A late answer is ignored.
    peer.answer(&question, json!({"action": "decline"})).await;
    assert_eq!(get_task(&mut peer, &id).await["status"], "cancelled");
    assert_eq!(peer.session.request_quota.of("stdio"), 0);
}

#[tokio::test]
async fn an_expired_question_is_withdrawn() {
    let host = host(|call| {
        let until = request_state::unix_millis_now() + 50;
        let journal = CallJournal {
            rounds: 1,
            until,
            ..CallJournal::clone(&call.journal)
        };
        let questions = ["a", "b"]
            .map(|key| question(key, QuestionKind::Form))
            .into();
        Some(Ok(CallReply::Questions(QuestionRound {
            questions,
            journal,
        })))
    });
    let mut peer = client(&host, CORE).await;
    let (id, waiting, first) = begin_asked_task(&mut peer, &host).await;
    let messages = messages_until(&mut peer, waiting).await;
    let second = messages
        .iter()
        .find(|message| message["method"] == "elicitation/create")
        .unwrap();
    for question in [&first, second] {
        assert!(
            messages
                .iter()
                .any(|message| is_withdrawal(message, question)),
            "{messages:?}"
        );
    }
    assert_eq!(
        messages.last().unwrap()["result"]["isError"],
        true,
        "{messages:?}"
    );
    wait_for_status(&mut peer, &id, "failed").await;
    wait_until(|| peer.session.pending.is_empty()).await;
}

#[tokio::test]
async fn a_cancelled_request_receives_no_more_questions() {
    let host = asking_host(&[&["a"]]);
    let mut peer = client(&host, CORE).await;
    let (id, waiting, question) = begin_asked_task(&mut peer, &host).await;
    peer.cancel(waiting).await;
    let withdrawn = peer.receive().await;
    assert!(is_withdrawal(&withdrawn, &question), "{withdrawn}");
    wait_until(|| peer.session.pending.is_empty()).await;
    assert_eq!(
        get_task(&mut peer, &id).await["status"],
        "input_required",
        "others can answer"
    );
}

#[tokio::test]
async fn a_cancelled_task_accepts_no_answers() {
    let host = asking_host(&[&["a", "b"]]);
    let mut peer = client(&host, EXTENSION).await;
    let id = begin_task(&mut peer).await;
    host.release();
    wait_for_status(&mut peer, &id, "input_required").await;
    let accept = json!({"action": "accept", "content": {"name": "x".repeat(10_000)}});
    let update = |key: &str| json!({"taskId": id, "inputResponses": {key: accept}});
    peer.result("tasks/update", update("a")).await;
    assert!(
        peer.session.request_quota.of("stdio") > 10_000,
        "it is counted"
    );
    peer.result("tasks/cancel", json!({"taskId": id})).await;
    wait_until(|| peer.session.request_quota.of("stdio") == 0).await;
    peer.result("tasks/update", update("b")).await;
    assert_eq!(peer.session.request_quota.of("stdio"), 0);
    let task = get_task(&mut peer, &id).await;
    assert_eq!(
        (&task["status"], task.get("inputRequests")),
        (&json!("cancelled"), None)
    );
    assert!(Duration::from_millis(task["ttlMs"].as_u64().unwrap()) > Duration::from_secs(1));
}
