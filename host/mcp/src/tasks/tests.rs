//! Tests tasks of both forms.

mod bounds;
mod loading;
mod withdrawn;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use bytesize::ByteSize;
use parking_lot::Mutex;
use serde_json::{Value, json};
use toolbay_model::{
    CallError, CallFailure, CallJournal, CallRejection, CallReply, CapacityLimit, QuestionKind,
    QuestionRound, RejectionReason, TaskSupport,
};

use super::TaskOptions;
use crate::host::interface::ClientCall;
use crate::host::request_state::{self, RequestStates};
use crate::protocol::capabilities::TASKS_EXTENSION;
use crate::protocol::revision::Revision;
use crate::testing::stub_client::WAITS;
use crate::testing::stub_host::StubServer;
use crate::testing::test_peer::TestPeer;
use crate::testing::test_questions::{all_capabilities, question, text_reply};

const CORE: Revision = Revision::V2025_11_25;
const EXTENSION: Revision = Revision::V2026_07_28;

/// Returns the capabilities of a client that accepts tasks and answers questions.
fn declared() -> Value {
    let mut declared = all_capabilities();
    declared["extensions"] = json!({TASKS_EXTENSION: {}});
    declared
}

/// Creates a host where every call that waits becomes a task.
fn host(
    script: impl Fn(&ClientCall) -> Option<Result<CallReply, CallFailure>> + Send + Sync + 'static,
) -> Arc<StubServer> {
    StubServer::scripted(RequestStates::in_memory(&[7; 32]).unwrap(), script)
        .with_tasks(immediate_task_options())
}

fn immediate_task_options() -> TaskOptions {
    TaskOptions {
        promotion_delay: Duration::from_millis(1),
        ..TaskOptions::default()
    }
}

/// Returns options with which no call runs long enough to become a task.
fn no_task_options() -> TaskOptions {
    TaskOptions {
        promotion_delay: Duration::from_hours(1),
        ..TaskOptions::default()
    }
}

/// Waits until the condition is true.
async fn wait_until(condition: impl Fn() -> bool) {
    while !condition() {
        tokio::task::yield_now().await;
    }
}

fn replying_host(text: &'static str) -> Arc<StubServer> {
    host(move |_| Some(Ok(text_reply(text))))
}

async fn client(host: &Arc<StubServer>, revision: Revision) -> TestPeer {
    TestPeer::with_capabilities(Arc::clone(host), revision, declared()).await
}

/// Returns the parameters of a call that waits. It becomes a task in the revisions in which clients
/// decide that.
fn slow_call_params() -> Value {
    json!({"name": "a", "arguments": {WAITS: true}, "task": {"ttl": 60_000}})
}

/// Starts a task and returns its id.
async fn begin_task(peer: &mut TestPeer) -> String {
    let created = peer.result("tools/call", slow_call_params()).await;
    let task = created.get("task").unwrap_or(&created);
    task["taskId"]
        .as_str()
        .unwrap_or_else(|| panic!("{created}"))
        .to_owned()
}

async fn get_task(peer: &mut TestPeer, id: &str) -> Value {
    peer.result("tasks/get", json!({"taskId": id})).await
}

/// Waits until the task has this status.
async fn wait_for_status(peer: &mut TestPeer, id: &str, status: &str) -> Value {
    loop {
        let task = get_task(peer, id).await;
        if task["status"] == status {
            return task;
        }
        assert!(
            matches!(task["status"].as_str(), Some("working" | "input_required")),
            "{task}"
        );
        tokio::task::yield_now().await;
    }
}

/// Returns a result without the members that differ each time.
fn stable_text(mut value: Value) -> String {
    fn blur(value: &mut Value) {
        if let Some(items) = value.as_array_mut() {
            items.iter_mut().for_each(blur);
        } else if let Some(members) = value.as_object_mut() {
            for (name, value) in members {
                match name.as_str() {
                    "taskId" => *value = "ID".into(),
                    "createdAt" | "lastUpdatedAt" => {
                        assert!(
                            value
                                .as_str()
                                .is_some_and(|time| time.ends_with('Z') && time.len() == 24),
                            "{value}"
                        );
                        *value = "TIME".into();
                    }
                    "io.modelcontextprotocol/serverInfo" => *value = "SERVER".into(),
                    _ => blur(value),
                }
            }
        }
    }
    blur(&mut value);
    value.to_string()
}

#[tokio::test]
async fn the_messages_of_both_forms() {
    let mut shown = Vec::new();
    for revision in [CORE, EXTENSION] {
        let host = replying_host("done");
        let mut peer = client(&host, revision).await;
        let created = peer.result("tools/call", slow_call_params()).await;
        let id = created.get("task").unwrap_or(&created)["taskId"]
            .as_str()
            .unwrap()
            .to_owned();
        shown.push(stable_text(created));
        shown.push(stable_text(get_task(&mut peer, &id).await));
        host.release();
        shown.push(stable_text(
            wait_for_status(&mut peer, &id, "completed").await,
        ));
        if revision == CORE {
            shown.push(stable_text(
                peer.result("tasks/result", json!({"taskId": id})).await,
            ));
            shown.push(stable_text(peer.result("tasks/list", json!({})).await));
        }
    }
    insta::assert_snapshot!(shown.join("\n"));
}

#[tokio::test]
async fn only_a_call_that_takes_long_becomes_a_task_where_the_server_decides() {
    let host = replying_host("at once").with_tasks(no_task_options());
    let mut peer = client(&host, EXTENSION).await;
    let result = peer
        .result("tools/call", json!({"name": "a", "task": {}}))
        .await;
    assert_eq!(
        (&result["resultType"], &result["content"][0]["text"]),
        (&json!("complete"), &json!("at once"))
    );
    // A client that accepts no tasks waits.
    let mut without = TestPeer::new(EXTENSION).await;
    without.host.release();
    let result = without.result("tools/call", slow_call_params()).await;
    assert_eq!(result["resultType"], "complete");
    for method in ["tasks/get", "tasks/cancel", "tasks/update"] {
        let error = without.error(method, json!({"taskId": "x"})).await;
        assert_eq!(
            (&error["code"], &error["data"]),
            (
                &json!(-32021),
                &json!({"requiredCapabilities": {"extensions": {TASKS_EXTENSION: {}}}})
            )
        );
    }
    for method in ["tasks/list", "tasks/result"] {
        assert_eq!(
            peer.error(method, json!({"taskId": "x"})).await["code"],
            -32601
        );
    }
}

#[tokio::test]
async fn a_tool_declares_whether_it_can_be_a_task() {
    let mut shown = String::new();
    for support in [
        TaskSupport::Forbidden,
        TaskSupport::Optional,
        TaskSupport::Required,
    ] {
        for revision in Revision::ALL {
            for declares in [true, false] {
                for asks in [true, false] {
                    let host = replying_host("done");
                    host.set_task_support(support);
                    host.release();
                    let capabilities = if declares { declared() } else { json!({}) };
                    let mut peer = TestPeer::with_capabilities(host, revision, capabilities).await;
                    let mut params = json!({"name": "a"});
                    if asks {
                        params["task"] = json!({});
                    }
                    let response = peer.request_response("tools/call", params).await;
                    let what = match (&response["error"], &response["result"]) {
                        (Value::Null, result) if result.get("task").is_some() => {
                            "a task".to_owned()
                        }
                        (Value::Null, _) => "a result".to_owned(),
                        (error, _) => format!("{} {}", error["code"], error["message"]),
                    };
                    let how = [("declares", declares), ("asks", asks)]
                        .map(|(word, is)| if is { word } else { "-" });
                    writeln!(shown, "{support:?} {revision} {}: {what}", how.join(" ")).unwrap();
                }
            }
        }
    }
    insta::assert_snapshot!(shown);
    let mut peer = client(&replying_host("done"), CORE).await;
    for wrong in [
        json!(7),
        json!({"ttl": -1}),
        json!({"ttl": "long"}),
        json!([]),
    ] {
        let error = peer
            .error("tools/call", json!({"name": "a", "task": wrong}))
            .await;
        assert_eq!(error["code"], -32602, "{error}");
    }
}

#[tokio::test]
async fn failures_end_tasks_as_each_form_specifies() {
    type Fails = fn() -> CallFailure;
    let cases: [(Fails, &str, &str); 2] = [
        (
            || CallFailure::Call(CallError::Failed("no luck".into())),
            "failed",
            "completed",
        ),
        (
            || CallFailure::unknown(toolbay_model::TargetKind::Tool, "a"),
            "failed",
            "failed",
        ),
    ];
    for (fails, core, extension) in cases {
        let host = host(move |_| Some(Err(fails())));
        host.release();
        let mut peer = client(&host, CORE).await;
        let id = begin_task(&mut peer).await;
        wait_for_status(&mut peer, &id, core).await;
        let response = peer
            .request_response("tasks/result", json!({"taskId": id}))
            .await;
        let is_error = response["result"]["isError"] == true || response["error"]["code"] == -32602;
        assert!(is_error, "{response}");
        let slow = crate::tasks::tests::host(move |_| Some(Err(fails())));
        let mut peer = client(&slow, EXTENSION).await;
        let id = begin_task(&mut peer).await;
        slow.release();
        let task = wait_for_status(&mut peer, &id, extension).await;
        assert_eq!(task.get("error").is_some(), extension == "failed", "{task}");
        assert_eq!(
            task["result"]["isError"] == true,
            extension == "completed",
            "{task}"
        );
    }
}

/// Creates a plugin that asks these questions, round by round, and then returns the answers.
fn asking_host(rounds: &'static [&'static [&'static str]]) -> Arc<StubServer> {
    host(move |call| {
        let journal = &call.journal;
        let round = usize::try_from(journal.rounds).unwrap();
        Some(Ok(match rounds.get(round) {
            Some(keys) => {
                let questions = keys
                    .iter()
                    .map(|key| question(key, QuestionKind::Form))
                    .collect();
                let until = request_state::unix_millis_now() + 60_000;
                let journal = CallJournal {
                    rounds: journal.rounds + 1,
                    until,
                    ..CallJournal::clone(journal)
                };
                CallReply::Questions(QuestionRound { questions, journal })
            }
            None => text_reply(&format!("{:?}", journal.answers)),
        }))
    })
}

#[tokio::test]
async fn questions_of_a_task_are_answered_one_by_one() {
    let host = asking_host(&[&["a", "b"], &["a"]]);
    let mut peer = client(&host, EXTENSION).await;
    let id = begin_task(&mut peer).await;
    host.release();
    let task = wait_for_status(&mut peer, &id, "input_required").await;
    let keys = |task: &Value| {
        task["inputRequests"]
            .as_object()
            .map(|asked| asked.keys().cloned().collect::<Vec<_>>())
    };
    assert_eq!(keys(&task), Some(vec!["a".to_owned(), "b".to_owned()]));
    assert_eq!(task["inputRequests"]["a"]["method"], "elicitation/create");
    let accept = |n: u64| json!({"action": "accept", "content": {"name": n.to_string()}});
    let update = |responses: Value| json!({"taskId": id, "inputResponses": responses});
    peer.result(
        "tasks/update",
        update(json!({"b": accept(2), "x": accept(9), "a": 7})),
    )
    .await;
    let task = get_task(&mut peer, &id).await;
    assert_eq!(
        (&task["status"], keys(&task)),
        (&json!("input_required"), Some(vec!["a".to_owned()]))
    );
    // An answer is accepted only once.
    peer.result(
        "tasks/update",
        update(json!({"b": accept(8), "a": accept(1)})),
    )
    .await;
    let task = wait_for_status(&mut peer, &id, "input_required").await;
    assert_eq!(
        keys(&task),
        Some(vec!["a-2".to_owned()]),
        "a key is not used twice"
    );
    peer.result("tasks/update", update(json!({"a": accept(9)})))
        .await;
    peer.result("tasks/update", update(json!({"a-2": accept(3)})))
        .await;
    let task = wait_for_status(&mut peer, &id, "completed").await;
    let text = task["result"]["content"][0]["text"].as_str().unwrap();
    assert!(
        text.contains(r#"name\":\"3\""#) && text.contains(r#"name\":\"2\""#),
        "{text}"
    );
    assert_eq!(peer.session.request_quota.of("stdio"), 0);
    peer.result("tasks/update", update(json!({"a-2": accept(3)})))
        .await;
}

#[tokio::test]
async fn a_question_before_the_call_is_a_task_is_in_the_result() {
    let host = asking_host(&[&["a"]]).with_tasks(no_task_options());
    let mut peer = client(&host, EXTENSION).await;
    let result = peer.result("tools/call", json!({"name": "a"})).await;
    assert_eq!(
        (&result["resultType"], result.get("taskId")),
        (&json!("input_required"), None)
    );
}

#[tokio::test]
async fn only_one_waiting_request_receives_the_questions() {
    let host = asking_host(&[&["a", "b"]]);
    let mut peer = client(&host, CORE).await;
    let id = begin_task(&mut peer).await;
    let first = peer.request("tasks/result", json!({"taskId": id})).await;
    let second = peer.request("tasks/result", json!({"taskId": id})).await;
    host.release();
    let mut responses = Vec::new();
    let mut asked = 0;
    while responses.len() < 2 {
        let message = peer.receive().await;
        if message["method"] == "elicitation/create" {
            assert_eq!(
                message["params"]["_meta"]["io.modelcontextprotocol/related-task"]["taskId"],
                id
            );
            asked += 1;
            peer.answer(
                &message,
                json!({"action": "accept", "content": {"name": "x"}}),
            )
            .await;
        } else if message.get("result").is_some() {
            responses.push(message);
        }
    }
    assert_eq!(asked, 2, "each question once");
    let mut ids: Vec<_> = responses
        .iter()
        .map(|response| response["id"].as_u64().unwrap())
        .collect();
    ids.sort_unstable();
    assert_eq!(ids, [first, second]);
    let related = &responses[0]["result"]["_meta"]["io.modelcontextprotocol/related-task"];
    assert_eq!(related["taskId"], id);
}

#[tokio::test]
async fn the_next_waiting_request_receives_the_questions_if_the_first_disconnects() {
    let host = asking_host(&[&["a"]]);
    host.release();
    let mut peer = client(&host, CORE).await;
    let id = begin_task(&mut peer).await;
    let first = peer.request("tasks/result", json!({"taskId": id})).await;
    let question = peer.receive().await;
    let question = if question["method"] == "notifications/progress" {
        peer.receive().await
    } else {
        question
    };
    assert_eq!(question["method"], "elicitation/create", "{question}");
    let mut other = client(&host, CORE).await;
    let waiting = other.request("tasks/result", json!({"taskId": id})).await;
    peer.cancel(first).await;
    let again = other.receive().await;
    assert_eq!(again["method"], "elicitation/create", "{again}");
    other.answer(&again, json!({"action": "decline"})).await;
    let response = other.receive().await;
    assert_eq!(
        (
            &response["id"],
            response["result"]["content"][0]["text"].as_str()
        ),
        (
            &json!(waiting),
            Some(r#"{"a": "{\"action\":\"decline\"}"}"#)
        )
    );
}

#[tokio::test]
async fn a_task_survives_its_request_and_its_session() {
    for revision in [CORE, EXTENSION] {
        let host = replying_host("done");
        let mut peer = client(&host, revision).await;
        let request = peer.request("tools/call", slow_call_params()).await;
        let created = loop {
            let message = peer.receive().await;
            if message["id"] == request {
                break message["result"].clone();
            }
        };
        let id = created.get("task").unwrap_or(&created)["taskId"]
            .as_str()
            .unwrap()
            .to_owned();
        peer.cancel(request).await;
        peer.session.shutdown.ended.cancel();
        peer.disconnect();
        host.release();
        let mut other = client(&host, revision).await;
        wait_for_status(&mut other, &id, "completed").await;
    }
}

#[tokio::test]
async fn a_request_that_is_cancelled_before_it_is_a_task_leaves_nothing() {
    let host = replying_host("done").with_tasks(no_task_options());
    let mut peer = client(&host, EXTENSION).await;
    let request = peer.request("tools/call", slow_call_params()).await;
    wait_until(|| host.waiting() == 1).await;
    peer.cancel(request).await;
    wait_until(|| host.waiting() == 0 && peer.session.in_flight.is_empty()).await;
    assert!(host_tasks(&host).live_tasks().is_empty());
}

fn host_tasks(host: &Arc<StubServer>) -> super::TaskTable {
    host.tasks().clone()
}

#[tokio::test]
async fn a_task_is_invisible_to_other_callers() {
    for revision in [CORE, EXTENSION] {
        let host = replying_host("done");
        let mut ada =
            TestPeer::with_caller_name(Arc::clone(&host), "token:ada", revision, declared()).await;
        let mut eve =
            TestPeer::with_caller_name(Arc::clone(&host), "token:eve", revision, declared()).await;
        let id = begin_task(&mut ada).await;
        let methods: &[&str] = if revision == CORE {
            &["tasks/get", "tasks/cancel", "tasks/result"]
        } else {
            &["tasks/get", "tasks/cancel", "tasks/update"]
        };
        for method in methods {
            let foreign = eve
                .error(method, json!({"taskId": id, "inputResponses": {"a": {}}}))
                .await;
            let missing = eve
                .error(
                    method,
                    json!({"taskId": "x".repeat(id.len()), "inputResponses": {}}),
                )
                .await;
            assert_eq!(
                (&foreign["code"], &missing["code"]),
                (&json!(-32602), &json!(-32602)),
                "{method}"
            );
        }
        if revision == CORE {
            assert_eq!(
                eve.result("tasks/list", json!({})).await["tasks"],
                json!([])
            );
            assert_eq!(
                ada.result("tasks/list", json!({})).await["tasks"]
                    .as_array()
                    .unwrap()
                    .len(),
                1
            );
            // All clients behind one address are one caller: none of them gets a list.
            let mut anonymous =
                TestPeer::with_caller_name(Arc::clone(&host), "ip:192.0.2.7", revision, declared())
                    .await;
            assert_eq!(
                anonymous.error("tasks/list", json!({})).await["code"],
                -32601
            );
        }
        // A client that supports the other form of tasks does not see the task either.
        let other = if revision == CORE { EXTENSION } else { CORE };
        let mut other =
            TestPeer::with_caller_name(Arc::clone(&host), "token:ada", other, declared()).await;
        assert_eq!(
            other.error("tasks/get", json!({"taskId": id})).await["code"],
            -32602
        );
        assert_eq!(get_task(&mut ada, &id).await["status"], "working");
    }
}

#[tokio::test]
async fn a_task_that_is_cancelled_ends_its_call() {
    for revision in [CORE, EXTENSION] {
        let host = replying_host("done");
        let mut peer = client(&host, revision).await;
        let id = begin_task(&mut peer).await;
        wait_until(|| host.waiting() == 1).await;
        peer.result("tasks/cancel", json!({"taskId": id})).await;
        assert_eq!(get_task(&mut peer, &id).await["status"], "cancelled");
        wait_until(|| host.waiting() == 0).await;
        host.release();
        assert_eq!(get_task(&mut peer, &id).await["status"], "cancelled");
        let again = peer
            .request_response("tasks/cancel", json!({"taskId": id}))
            .await;
        assert_eq!(again.get("error").is_some(), revision == CORE, "{again}");
    }
}

#[tokio::test]
async fn an_expired_task_is_removed() {
    let host = replying_host("done").with_tasks(TaskOptions {
        ttl: Duration::from_millis(100),
        ..immediate_task_options()
    });
    let mut peer = client(&host, CORE).await;
    let kept = begin_task(&mut peer).await;
    let stuck = begin_task(&mut peer).await;
    peer.request_response("tasks/cancel", json!({"taskId": kept}))
        .await;
    for id in [kept, stuck] {
        let error = loop {
            let response = peer
                .request_response("tasks/get", json!({"taskId": id}))
                .await;
            match response.get("error") {
                Some(error) => break error.clone(),
                None => tokio::task::yield_now().await,
            }
        };
        assert!(
            error["message"]
                .as_str()
                .unwrap()
                .starts_with("Unknown task: "),
            "{error}"
        );
    }
    wait_until(|| host.waiting() == 0 && host_tasks(&host).live_tasks().is_empty()).await;
}

#[tokio::test]
async fn the_tasks_of_a_caller_are_bounded_in_number() {
    let host = replying_host("done").with_tasks(TaskOptions {
        per_caller: 2,
        ..immediate_task_options()
    });
    let mut peer = client(&host, CORE).await;
    let first = begin_task(&mut peer).await;
    begin_task(&mut peer).await;
    let error = peer.error("tools/call", slow_call_params()).await;
    assert_eq!(
        (&error["code"], &error["data"]["dev.toolbay/error"]),
        (&json!(-32010), &json!("busy")),
        "{error}"
    );
    // Other callers have their own limit.
    let mut other =
        TestPeer::with_caller_name(Arc::clone(&host), "token:other", CORE, declared()).await;
    begin_task(&mut other).await;
    // A task without a result is evicted.
    peer.result("tasks/cancel", json!({"taskId": first})).await;
    begin_task(&mut peer).await;
    assert_eq!(
        peer.error("tasks/get", json!({"taskId": first})).await["code"],
        -32602
    );
    // If the server decides, a call that cannot be stored does not become a task.
    let mut extension = client(&host, EXTENSION).await;
    let running = host.waiting();
    let request = extension.request("tools/call", slow_call_params()).await;
    wait_until(|| host.waiting() > running).await;
    host.release();
    let response = loop {
        let message = extension.receive().await;
        if message.get("id").is_some() {
            break message;
        }
    };
    assert_eq!(
        (&response["id"], &response["result"]["resultType"]),
        (&json!(request), &json!("complete"))
    );
}

#[tokio::test]
async fn a_task_fails_with_a_reason_if_its_result_cannot_be_stored() {
    let host = host(|_| Some(Ok(text_reply(&"x".repeat(1 << 20)))));
    let host = host.with_tasks(TaskOptions {
        memory: ByteSize::mib(4),
        ..immediate_task_options()
    });
    host.release();
    let mut peer = client(&host, CORE).await;
    let id = begin_task(&mut peer).await;
    wait_for_status(&mut peer, &id, "failed").await;
    let error = peer.error("tasks/result", json!({"taskId": id})).await;
    assert!(
        error["message"].as_str().unwrap().contains("tasks.memory"),
        "{error}"
    );
}

#[tokio::test]
async fn a_thousand_tasks_are_stored() {
    let host = replying_host("done");
    let mut peer = client(&host, CORE).await;
    let mut ids = Vec::new();
    for _ in 0..1_000 {
        ids.push(begin_task(&mut peer).await);
    }
    wait_until(|| host.waiting() == 1_000).await;
    assert_eq!(
        peer.error("tools/call", slow_call_params()).await["code"],
        -32010
    );
    let first = peer.result("tasks/list", json!({})).await;
    let second = peer
        .result("tasks/list", json!({"cursor": first["nextCursor"]}))
        .await;
    let listed: Vec<_> = [&first, &second]
        .iter()
        .flat_map(|page| page["tasks"].as_array().unwrap().clone())
        .collect();
    assert_eq!(listed.len(), 1_000);
    assert!(second.get("nextCursor").is_none());
    let listed: BTreeSet<_> = listed
        .iter()
        .map(|task| task["taskId"].as_str().unwrap())
        .collect();
    assert_eq!(listed, ids.iter().map(String::as_str).collect());
    host.release();
    for id in &ids {
        wait_for_status(&mut peer, id, "completed").await;
    }
    assert_eq!(
        peer.session.request_quota.of("stdio"),
        0,
        "only results are left"
    );
}

#[tokio::test]
async fn tasks_end_with_the_server() {
    for revision in [CORE, EXTENSION] {
        let host = replying_host("done");
        let mut peer = client(&host, revision).await;
        let id = begin_task(&mut peer).await;
        host_tasks(&host).stop().await;
        wait_until(|| host.waiting() == 0).await;
        assert_eq!(get_task(&mut peer, &id).await["status"], "failed");
    }
}

#[tokio::test]
async fn a_client_is_notified_of_the_tasks_that_it_names() {
    let host = asking_host(&[&["a"]]);
    let mut peer = client(&host, EXTENSION).await;
    let id = begin_task(&mut peer).await;
    let params = json!({"notifications": {"taskIds": [id, "unknown"]}});
    let listening = peer.request("subscriptions/listen", params).await;
    let acknowledged = peer.receive().await;
    assert_eq!(
        acknowledged["params"]["notifications"],
        json!({"taskIds": [id]})
    );
    host.release();
    let mut statuses = Vec::new();
    loop {
        let message = peer.receive().await;
        assert_eq!(message["method"], "notifications/tasks", "{message}");
        assert_eq!(
            message["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"],
            listening
        );
        statuses.push(message["params"]["status"].as_str().unwrap().to_owned());
        match statuses.last().unwrap().as_str() {
            "input_required" => {
                assert!(message["params"]["inputRequests"].get("a").is_some());
                let params = peer.with_context(
                    json!({"taskId": id, "inputResponses": {"a": {"action": "decline"}}}),
                );
                peer.send(&json!({"jsonrpc": "2.0", "id": "u", "method": "tasks/update", "params": params})).await;
                let answer = peer.receive().await;
                if answer["id"] != "u" {
                    statuses.push(
                        answer["params"]["status"]
                            .as_str()
                            .unwrap_or_default()
                            .to_owned(),
                    );
                }
            }
            "completed" => {
                assert!(message["params"].get("result").is_some());
                break;
            }
            _ => {}
        }
    }
    assert_eq!(statuses.first().map(String::as_str), Some("input_required"));
}

/// A call with an answer becomes a task, has an effect, asks again, and is rejected when it
/// continues with the next answer.
#[tokio::test]
async fn an_answer_is_used_by_an_entry_even_if_the_call_is_rejected_later() {
    let asks = |call: &ClientCall, key: &str| {
        let until = request_state::unix_millis_now() + 60_000;
        let journal = CallJournal {
            until,
            ..CallJournal::clone(&call.journal)
        };
        Some(Ok(CallReply::Questions(QuestionRound {
            questions: vec![question(key, QuestionKind::Form)],
            journal,
        })))
    };
    // Both hosts have the same key; the call of the first asks before it becomes a task.
    let states = || RequestStates::in_memory(&[7; 32]).unwrap();
    let first =
        StubServer::scripted(states(), move |call| asks(call, "a")).with_tasks(no_task_options());
    first.release();
    let asked = client(&first, EXTENSION)
        .await
        .result("tools/call", slow_call_params())
        .await;
    let mut good = slow_call_params();
    good["requestState"] = asked["requestState"].clone();
    let accept = json!({"action": "accept", "content": {"name": "Ada"}});
    good["inputResponses"] = json!({"a": accept});
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let noted = Arc::clone(&seen);
    let reject = |reason| {
        let retry_after =
            (reason != RejectionReason::Suspended).then_some(Duration::from_millis(1));
        Some(Err(CallFailure::Rejected(CallRejection {
            reason,
            retry_after,
        })))
    };
    let host = host(move |call| {
        let keys: Vec<&str> = call.journal.answers.keys().map(String::as_str).collect();
        let mut seen = noted.lock();
        seen.push(keys.join(" "));
        match seen.len() {
            // The call waits in the queue, and starts with the state with which it was resumed.
            1 => reject(RejectionReason::Busy {
                limit: CapacityLimit::Plugin,
                capacity: 1,
            }),
            2 => asks(call, "b"),
            _ => reject(RejectionReason::Suspended),
        }
    });
    let mut peer = client(&host, EXTENSION).await;
    let created = peer.result("tools/call", good.clone()).await;
    let id = created["taskId"]
        .as_str()
        .unwrap_or_else(|| panic!("{created}"))
        .to_owned();
    host.release();
    wait_for_status(&mut peer, &id, "input_required").await;
    peer.result(
        "tasks/update",
        json!({"taskId": id, "inputResponses": {"b": accept}}),
    )
    .await;
    let task = wait_for_status(&mut peer, &id, "completed").await;
    let meta = &task["result"]["_meta"];
    assert_eq!(
        (
            &meta["dev.toolbay/error"],
            meta.get("dev.toolbay/retry-after-ms")
        ),
        (&json!("disabled"), None)
    );
    assert_eq!(*seen.lock(), ["a", "a", "a b"]);
    assert_eq!(
        peer.error("tools/call", good).await["data"],
        json!({"reason": "used"})
    );
    assert_eq!(seen.lock().len(), 3, "one answer is good for one entry");
}
