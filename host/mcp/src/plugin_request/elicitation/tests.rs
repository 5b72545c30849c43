//! Questions to the clients of sessions.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::oneshot;
use toolbay_model::{
    CallFailure, CallJournal, CallRejection, CallReply, QuestionKind, QuestionRound,
    RejectionReason,
};

use crate::host::interface::ClientCall;
use crate::host::operator_answers::{OperatorAnswer, OperatorReply};
use crate::host::request_state::{self, RequestStates};
use crate::protocol::revision::Revision;
use crate::testing::revision_changes::revision_changes;
use crate::testing::stub_host::StubServer;
use crate::testing::test_peer::TestPeer;
use crate::testing::test_questions::{all_capabilities, question, text_reply};

/// The revisions with sessions.
fn with_sessions() -> impl Iterator<Item = Revision> {
    Revision::ALL
        .into_iter()
        .filter(|revision| revision.features().sessions)
}

fn host(
    script: impl Fn(&ClientCall) -> Option<Result<CallReply, CallFailure>> + Send + Sync + 'static,
) -> Arc<StubServer> {
    StubServer::scripted(RequestStates::in_memory(&[7; 32]).unwrap(), script)
}

/// Ends a run with these questions.
fn ask(call: &ClientCall, questions: &[(&str, QuestionKind)]) -> CallReply {
    let questions = questions
        .iter()
        .map(|(key, kind)| question(key, *kind))
        .collect();
    let journal = CallJournal {
        rounds: call.journal.rounds + 1,
        until: until(60),
        ..CallJournal::clone(&call.journal)
    };
    CallReply::Questions(QuestionRound { questions, journal })
}

/// Returns the time in this number of seconds.
fn until(seconds: u64) -> u64 {
    request_state::unix_millis_now() + 1000 * seconds
}

/// A plugin that asks one question and returns the answer.
fn asking(kind: QuestionKind) -> Arc<StubServer> {
    host(move |call| {
        Some(Ok(match call.journal.answers.get("k") {
            Some(answer) => text_reply(answer),
            None if call.answerable.contains(kind) => ask(call, &[("k", kind)]),
            None => text_reply("not asked"),
        }))
    })
}

fn text(response: &Value) -> &str {
    response["result"]["content"][0]["text"]
        .as_str()
        .unwrap_or_else(|| panic!("{response}"))
}

#[tokio::test]
async fn every_kind_of_question_in_every_revision_with_sessions() {
    let mut shown = String::new();
    for kind in QuestionKind::ALL {
        let mut requests = Vec::new();
        for revision in with_sessions() {
            let mut peer =
                TestPeer::with_capabilities(asking(kind), revision, all_capabilities()).await;
            let id = peer.call().await;
            let mut message = peer.receive().await;
            requests.push((
                revision,
                if message.get("method").is_some() {
                    peer.answer(&message, json!({"answered": true})).await;
                    let response = peer.receive().await;
                    assert_eq!(
                        (&response["id"], text(&response)),
                        (&json!(id), r#"{"answered":true}"#)
                    );
                    assert_eq!(message["jsonrpc"], "2.0");
                    message["id"] = "ID".into();
                    if message["params"].get("elicitationId").is_some() {
                        message["params"]["elicitationId"] = "ID".into();
                    }
                    message.to_string()
                } else {
                    text(&message).to_owned()
                },
            ));
            assert!(peer.try_receive().is_none() && peer.session.in_flight.is_empty());
        }
        writeln!(shown, "{kind:?}\n{}", revision_changes(requests)).unwrap();
    }
    insta::assert_snapshot!(shown);
}

#[tokio::test]
async fn prompts_and_resources_ask_too_and_completions_do_not() {
    let host = host(|call| {
        if call.answerable == toolbay_model::QuestionKindSet::default() {
            return None;
        }
        Some(match call.journal.answers.get("k") {
            Some(_) => return None,
            None => Ok(ask(call, &[("k", QuestionKind::Roots)])),
        })
    });
    let mut peer =
        TestPeer::with_capabilities(host, Revision::V2025_11_25, all_capabilities()).await;
    for (method, params, member) in [
        ("prompts/get", json!({"name": "a"}), "messages"),
        ("resources/read", json!({"uri": "test://a"}), "contents"),
    ] {
        peer.request(method, params).await;
        let question = peer.receive().await;
        assert_eq!(question["method"], "roots/list");
        peer.answer(&question, json!({"roots": []})).await;
        let response = peer.receive().await;
        assert!(response["result"].get(member).is_some(), "{response}");
    }
    let params =
        json!({"ref": {"type": "ref/prompt", "name": "a"}, "argument": {"name": "x", "value": ""}});
    let response = peer.request_response("completion/complete", params).await;
    assert!(response["result"].get("completion").is_some(), "{response}");
}

#[tokio::test]
async fn several_questions_are_answered_in_any_order_and_rounds_add_up() {
    let host = host(|call| {
        let answers = &call.journal.answers;
        Some(Ok(if !answers.contains_key("b") {
            ask(
                call,
                &[("a", QuestionKind::Form), ("b", QuestionKind::Sampling)],
            )
        } else if !answers.contains_key("c") {
            ask(call, &[("c", QuestionKind::Roots)])
        } else {
            text_reply(&format!("{} {answers:?}", call.journal.rounds))
        }))
    });
    let mut peer =
        TestPeer::with_capabilities(host, Revision::V2025_11_25, all_capabilities()).await;
    peer.call().await;
    let first = peer.receive().await;
    let second = peer.receive().await;
    assert_ne!(first["id"], second["id"]);
    peer.answer(&second, json!({"n": 2})).await;
    assert!(peer.try_receive().is_none());
    peer.answer(&first, json!({"n": 1})).await;
    let third = peer.receive().await;
    peer.answer(&third, json!({"n": 3})).await;
    let expected: BTreeMap<_, _> = [
        ("a", r#"{"n":1}"#),
        ("b", r#"{"n":2}"#),
        ("c", r#"{"n":3}"#),
    ]
    .into();
    assert_eq!(text(&peer.receive().await), format!("2 {expected:?}"));
}

#[tokio::test]
async fn a_client_that_rejects_declines_or_cancels_a_form_and_fails_everything_else() {
    let errors = [
        (-1, "User rejected\u{1b}[2J\nit"),
        (-32602, "mode not declared"),
        (-32601, "no such method"),
    ];
    let mut shown = String::new();
    for kind in [
        QuestionKind::Form,
        QuestionKind::Url,
        QuestionKind::Sampling,
        QuestionKind::Roots,
    ] {
        for (code, message) in errors {
            let mut peer = TestPeer::with_capabilities(
                asking(kind),
                Revision::V2025_11_25,
                all_capabilities(),
            )
            .await;
            peer.call().await;
            let question = peer.receive().await;
            let error = json!({"code": code, "message": message});
            peer.send(&json!({"jsonrpc": "2.0", "id": question["id"], "error": error}))
                .await;
            let response = peer.receive().await;
            let failed = response["result"]["isError"] == true;
            writeln!(shown, "{kind:?} {code}: {failed} {}", text(&response)).unwrap();
        }
    }
    insta::assert_snapshot!(shown);
}

#[tokio::test]
async fn one_error_withdraws_the_other_questions() {
    let host = host(|call| {
        Some(Ok(ask(
            call,
            &[("a", QuestionKind::Roots), ("b", QuestionKind::Roots)],
        )))
    });
    let mut peer =
        TestPeer::with_capabilities(host, Revision::V2025_06_18, all_capabilities()).await;
    peer.call().await;
    let first = peer.receive().await;
    let second = peer.receive().await;
    peer.send(
        &json!({"jsonrpc": "2.0", "id": first["id"], "error": {"code": -32603, "message": "x"}}),
    )
    .await;
    let withdrawn = peer.receive().await;
    assert_eq!(withdrawn["method"], "notifications/cancelled");
    assert_eq!(withdrawn["params"]["requestId"], second["id"]);
    assert_eq!(peer.receive().await["result"]["isError"], true);
}

#[tokio::test]
async fn hostile_answers_fail_the_call_and_nothing_else() {
    let long = format!("{{\"a\":\"{}\"}}", "x".repeat(1 << 20));
    let deep = format!("{{\"a\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    let mut peer = TestPeer::with_capabilities(
        asking(QuestionKind::Roots),
        Revision::V2025_11_25,
        all_capabilities(),
    )
    .await;
    for hostile in ["[]", "null", "7", "\"text\"", &long, &deep] {
        peer.call().await;
        let question = peer.receive().await;
        peer.send_text(&format!(
            r#"{{"jsonrpc":"2.0","id":{},"result":{hostile}}}"#,
            question["id"]
        ))
        .await;
        let response = peer.receive().await;
        assert_eq!(response["result"]["isError"], true);
        assert!(text(&response).starts_with(
            "The client did not answer \"k\" (roots/list): error -32603, a result that"
        ));
    }
    peer.call().await;
    let question = peer.receive().await;
    peer.answer(&question, json!({"a": "x".repeat(100_000)}))
        .await;
    assert!(peer.receive().await["result"].get("isError").is_none());
}

#[tokio::test]
async fn answers_that_nobody_waits_for_are_ignored() {
    let mut peer = TestPeer::with_capabilities(
        asking(QuestionKind::Roots),
        Revision::V2025_11_25,
        all_capabilities(),
    )
    .await;
    peer.call().await;
    let question = peer.receive().await;
    for number in 0..10_000 {
        peer.send(&json!({"jsonrpc": "2.0", "id": number, "result": {}}))
            .await;
        peer.send(&json!({"jsonrpc": "2.0", "id": format!("{number}"), "error": {"code": -1, "message": ""}})).await;
    }
    peer.send(
        &json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32700, "message": "what?"}}),
    )
    .await;
    assert!(peer.try_receive().is_none());
    peer.answer(&question, json!({"n": 1})).await;
    peer.answer(&question, json!({"n": 2})).await;
    assert_eq!(text(&peer.receive().await), r#"{"n":1}"#);
    peer.answer(&question, json!({"n": 3})).await;
    assert!(peer.try_receive().is_none());
}

#[tokio::test]
async fn another_session_cannot_answer() {
    let host = asking(QuestionKind::Roots);
    let mut one =
        TestPeer::with_capabilities(host.clone(), Revision::V2025_11_25, all_capabilities()).await;
    let mut other =
        TestPeer::with_capabilities(host, Revision::V2025_11_25, all_capabilities()).await;
    one.call().await;
    other.call().await;
    let question = one.receive().await;
    let its_own = other.receive().await;
    assert_ne!(question["id"], its_own["id"]);
    other.answer(&question, json!({"stolen": true})).await;
    assert!(other.try_receive().is_none() && one.try_receive().is_none());
    one.answer(&question, json!({"n": 1})).await;
    assert_eq!(text(&one.receive().await), r#"{"n":1}"#);
}

#[tokio::test]
async fn a_call_can_be_cancelled_while_it_waits() {
    let mut peer = TestPeer::with_capabilities(
        asking(QuestionKind::Form),
        Revision::V2025_11_25,
        all_capabilities(),
    )
    .await;
    let id = peer.call().await;
    let question = peer.receive().await;
    peer.cancel(id).await;
    let withdrawn = peer.receive().await;
    assert_eq!(withdrawn["params"]["requestId"], question["id"]);
    peer.answer(&question, json!({"action": "accept"})).await;
    // The id is free, and the next call gets the next message.
    peer.call().await;
    let question = peer.receive().await;
    assert_eq!(question["method"], "elicitation/create");
    peer.answer(&question, json!({"action": "decline"})).await;
    assert_eq!(text(&peer.receive().await), r#"{"action":"decline"}"#);
    assert!(peer.session.in_flight.is_empty());
}

#[tokio::test]
async fn a_client_that_goes_away_leaves_nothing_behind() {
    let mut peer = TestPeer::with_capabilities(
        asking(QuestionKind::Form),
        Revision::V2025_11_25,
        all_capabilities(),
    )
    .await;
    for _ in 0..50 {
        peer.call().await;
    }
    for _ in 0..50 {
        peer.receive().await;
    }
    assert!(!peer.session.in_flight.is_empty());
    peer.disconnect();
    // Waits for every call.
    peer.session
        .end(Duration::from_hours(1), std::future::pending())
        .await;
    assert!(peer.session.in_flight.is_empty());
    assert_eq!(peer.session.request_quota.of("stdio"), 0);
}

#[tokio::test]
async fn a_session_that_ends_does_not_wait_for_people() {
    let mut peer = TestPeer::with_capabilities(
        asking(QuestionKind::Form),
        Revision::V2025_11_25,
        all_capabilities(),
    )
    .await;
    peer.call().await;
    peer.receive().await;
    peer.session
        .end(Duration::from_hours(1), std::future::pending())
        .await;
    assert_eq!(peer.receive().await["method"], "notifications/cancelled");
    let response = peer.receive().await;
    assert_eq!(
        text(&response),
        "The call was stopped because the server is shutting down."
    );
}

#[tokio::test]
async fn nobody_waits_longer_than_the_limit() {
    let host = host(|call| {
        let CallReply::Questions(mut interview) = ask(call, &[("k", QuestionKind::Form)]) else {
            return None;
        };
        interview.journal.until = request_state::unix_millis_now() + 30;
        Some(Ok(CallReply::Questions(interview)))
    });
    let mut peer =
        TestPeer::with_capabilities(host, Revision::V2025_11_25, all_capabilities()).await;
    peer.call().await;
    let question = peer.receive().await;
    let withdrawn = peer.receive().await;
    let response = peer.receive().await;
    assert_eq!(withdrawn["params"]["requestId"], question["id"]);
    let text = text(&response);
    assert!(
        text.contains("were not answered within ") && text.contains("limits.ask_timeout"),
        "{text}"
    );
}

#[tokio::test]
async fn answers_are_not_lost_because_others_are_served() {
    let rejections = AtomicUsize::new(0);
    let host = host(move |call| {
        Some(match call.journal.answers.get("k") {
            Some(answer) if rejections.load(Ordering::Relaxed) == 3 => Ok(text_reply(answer)),
            Some(_) => {
                rejections.fetch_add(1, Ordering::Relaxed);
                Err(CallFailure::Rejected(CallRejection {
                    reason: RejectionReason::Disabled,
                    retry_after: Some(Duration::from_millis(5)),
                }))
            }
            None => Ok(ask(call, &[("k", QuestionKind::Roots)])),
        })
    });
    let mut peer =
        TestPeer::with_capabilities(host, Revision::V2025_11_25, all_capabilities()).await;
    peer.call().await;
    let question = peer.receive().await;
    peer.answer(&question, json!({"n": 1})).await;
    assert_eq!(text(&peer.receive().await), r#"{"n":1}"#);
    // The retry would be later than the answers are valid: the client gets an error.
    let host = self::host(|call| {
        if call.journal.answers.is_empty() {
            return Some(Ok(ask(call, &[("k", QuestionKind::Roots)])));
        }
        let retry_after = Some(Duration::from_mins(2));
        Some(Err(CallFailure::Rejected(CallRejection {
            reason: RejectionReason::Disabled,
            retry_after,
        })))
    });
    let mut peer =
        TestPeer::with_capabilities(host, Revision::V2025_11_25, all_capabilities()).await;
    peer.call().await;
    let question = peer.receive().await;
    peer.answer(&question, json!({"n": 1})).await;
    assert_eq!(
        peer.receive().await["result"]["_meta"]["dev.toolbay/error"],
        "disabled"
    );
}

#[tokio::test]
async fn memory_of_a_waiting_call_counts_against_its_caller() {
    const LONG: usize = 100_000;
    let host = host(|call| {
        let answers = &call.journal.answers;
        Some(Ok(
            match ["a", "b"]
                .into_iter()
                .find(|key| !answers.contains_key(*key))
            {
                Some(key) => ask(call, &[(key, QuestionKind::Form)]),
                None => text_reply("done"),
            },
        ))
    });
    let mut peer =
        TestPeer::with_capabilities(host, Revision::V2025_11_25, all_capabilities()).await;
    let intake = Arc::clone(&peer.session.request_quota);
    let name = peer.session.opener.name.clone();
    peer.call().await;
    let first = peer.receive().await;
    assert!(intake.of(&name) < LONG);
    peer.answer(&first, json!({"text": "x".repeat(LONG)})).await;
    let second = peer.receive().await;
    let held = intake.of(&name);
    assert!(
        held > LONG && held < 2 * LONG,
        "{held}: the first answer, once"
    );
    peer.answer(&second, json!({"text": "x".repeat(LONG)}))
        .await;
    assert_eq!(text(&peer.receive().await), "done");
    assert_eq!(intake.of(&name), 0, "it has ended");
}

#[tokio::test]
async fn the_operators_copy_of_a_question_counts_against_the_caller_or_is_not_kept() {
    const LONG: usize = 100_000;
    let host = host(|call| {
        let mut asked = ask(call, &[("k", QuestionKind::Form)]);
        if let CallReply::Questions(interview) = &mut asked {
            interview.questions[0].params =
                json!({"message": "x".repeat(LONG), "requestedSchema": {}}).into();
        }
        Some(Ok(call
            .journal
            .answers
            .get("k")
            .map_or(asked, |answer| text_reply(answer))))
    });
    let mut peer =
        TestPeer::with_capabilities(Arc::clone(&host), Revision::V2025_11_25, all_capabilities())
            .await;
    let intake = Arc::clone(&peer.session.request_quota);
    let name = peer.session.opener.name.clone();
    let answered = || OperatorReply {
        key: "k".to_owned(),
        answer: "yes".to_owned(),
        operator: "ada".to_owned(),
    };

    let (sender, receiver) = oneshot::channel();
    host.set_operator_answer(OperatorAnswer::new(receiver, ()));
    peer.call().await;
    let question = peer.receive().await;
    assert!(
        question["params"]["message"].as_str().unwrap().len() == LONG && intake.of(&name) > LONG
    );
    sender.send(answered()).unwrap();
    assert_eq!(peer.receive().await["method"], "notifications/cancelled");
    assert_eq!(text(&peer.receive().await), "yes");
    assert_eq!(intake.of(&name), 0);

    // If the caller's quota has room for one call only, nothing is retained. The client still gets
    // the question.
    let mut taken = Vec::new();
    while let Ok(portion) = intake.try_reserve(&name, LONG / 2) {
        taken.push(portion);
    }
    taken.pop();
    let (sender, receiver) = oneshot::channel();
    host.set_operator_answer(OperatorAnswer::new(receiver, ()));
    peer.call().await;
    let question = peer.receive().await;
    assert_eq!(question["method"], "elicitation/create", "{question}");
    assert!(sender.send(answered()).is_err(), "nobody waits for it");
    drop(taken);
}

#[tokio::test]
async fn a_call_without_memory_for_its_answers_cannot_wait() {
    let host = host(|call| {
        let answers = call.journal.answers.clone();
        let mut asked = ask(call, &[("k", QuestionKind::Form)]);
        if let (CallReply::Questions(interview), true) = (&mut asked, answers.is_empty()) {
            interview
                .journal
                .answers
                .insert("before".to_owned(), "x".repeat(1 << 20));
        }
        Some(Ok(asked))
    });
    let mut peer =
        TestPeer::with_capabilities(host, Revision::V2025_11_25, all_capabilities()).await;
    let intake = Arc::clone(&peer.session.request_quota);
    let name = peer.session.opener.name.clone();
    let mut taken = Vec::new();
    while let Ok(portion) = intake.try_reserve(&name, 1 << 20) {
        taken.push(portion);
    }
    peer.call().await;
    let response = peer.receive().await;
    assert_eq!(
        response["result"]["_meta"]["dev.toolbay/error"], "busy",
        "{response}"
    );
    drop(taken);
    assert_eq!(intake.of(&name), 0);
}

#[tokio::test]
async fn a_plugin_that_changed_meanwhile_is_not_entered() {
    let host = host(|call| {
        let first = call.journal.answers.is_empty();
        Some(if first {
            Ok(ask(call, &[("k", QuestionKind::Roots)]))
        } else {
            Err(CallFailure::Outdated)
        })
    });
    let mut peer =
        TestPeer::with_capabilities(host, Revision::V2025_11_25, all_capabilities()).await;
    peer.call().await;
    let question = peer.receive().await;
    peer.answer(&question, json!({})).await;
    let response = peer.receive().await;
    let expected =
        "The plugin or its grant changed while the call waited for an answer. Call again.";
    assert_eq!(
        (text(&response), &response["result"]["isError"]),
        (expected, &json!(true))
    );
}

#[tokio::test]
async fn a_client_that_is_not_ready_is_asked_later_and_one_that_declared_nothing_never() {
    let mut peer =
        TestPeer::with_capabilities(asking(QuestionKind::Form), Revision::V2025_11_25, json!({}))
            .await;
    peer.call().await;
    assert_eq!(text(&peer.receive().await), "not asked");
    let mut peer = TestPeer::with_capabilities(
        asking(QuestionKind::Form),
        Revision::V2025_11_25,
        all_capabilities(),
    )
    .await;
    peer.session
        .negotiated
        .send_modify(|negotiated| negotiated.is_initialized = false);
    peer.call().await;
    assert_eq!(
        peer.request_response("ping", json!({})).await["result"],
        json!({}),
        "it is the first message that the client receives"
    );
    peer.session
        .negotiated
        .send_modify(|negotiated| negotiated.is_initialized = true);
    assert_eq!(peer.receive().await["method"], "elicitation/create");
    // If the sandbox returns a question anyway, nothing is sent.
    let host = host(|call| Some(Ok(ask(call, &[("k", QuestionKind::Url)]))));
    let mut peer = TestPeer::with_capabilities(
        host.clone(),
        Revision::V2025_11_25,
        json!({"elicitation": {}}),
    )
    .await;
    let error = &peer
        .request_response("tools/call", json!({"name": "a"}))
        .await["error"];
    assert_eq!(
        (&error["code"], &error["data"]),
        (
            &json!(-32602),
            &json!({"requiredCapabilities": {"elicitation": {"url": {}}}})
        )
    );
    let mut peer = TestPeer::with_capabilities(host, Revision::V2025_11_25, json!({})).await;
    assert_eq!(
        peer.request_response("tools/call", json!({"name": "a"}))
            .await["error"]["code"],
        -32603
    );
}

#[tokio::test]
async fn questions_and_answers_of_a_batch() {
    let mut peer = TestPeer::with_capabilities(
        asking(QuestionKind::Roots),
        Revision::V2025_03_26,
        all_capabilities(),
    )
    .await;
    let call = |id: u64| json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "a"}});
    peer.send(&json!([call(1), {"jsonrpc": "2.0", "id": 2, "method": "ping"}, call(3)]))
        .await;
    let questions = [peer.receive().await, peer.receive().await];
    let answer =
        |question: &Value| json!({"jsonrpc": "2.0", "id": question["id"], "result": {"n": 1}});
    peer.send(&json!([answer(&questions[0]), answer(&questions[1])]))
        .await;
    let responses = peer.receive().await;
    let mut ids: Vec<_> = responses
        .as_array()
        .unwrap()
        .iter()
        .map(|response| response["id"].as_u64().unwrap())
        .collect();
    ids.sort_unstable();
    assert_eq!(ids, [1, 2, 3]);
}

#[tokio::test]
async fn progress_grows_over_all_entries() {
    let mut peer = TestPeer::with_capabilities(
        asking(QuestionKind::Roots),
        Revision::V2025_11_25,
        all_capabilities(),
    )
    .await;
    // The plugin reports the same progress in each run.
    let id = peer
        .request(
            "tools/call",
            json!({"name": "a", "_meta": {"progressToken": 7}}),
        )
        .await;
    assert_eq!(peer.receive().await["method"], "notifications/progress");
    let question = peer.receive().await;
    peer.answer(&question, json!({})).await;
    assert_eq!(peer.receive().await["id"], id);
}

#[tokio::test]
async fn the_open_questions_of_a_session_are_bounded() {
    let host = host(|call| {
        let keys: Vec<String> = (0..16).map(|number| number.to_string()).collect();
        let questions: Vec<_> = keys
            .iter()
            .map(|key| (key.as_str(), QuestionKind::Roots))
            .collect();
        Some(Ok(ask(call, &questions)))
    });
    let mut peer =
        TestPeer::with_capabilities(host, Revision::V2025_11_25, all_capabilities()).await;
    let mut first = 0;
    for _ in 0..256 {
        let id = peer.call().await;
        first = if first == 0 { id } else { first };
        for _ in 0..16 {
            peer.receive().await;
        }
    }
    peer.call().await;
    let response = peer.receive().await;
    assert_eq!(
        text(&response),
        "The client has 4096 unanswered questions, and it can receive no more."
    );
    peer.cancel(first).await;
    for _ in 0..16 {
        assert_eq!(peer.receive().await["method"], "notifications/cancelled");
    }
    peer.call().await;
    assert_eq!(peer.receive().await["method"], "roots/list");
}

/// Returns the resident memory of this process, in bytes.
fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

/// Environment variable that is set for a process that runs only this test.
const ALONE: &str = "TOOLBAY_TEST_ALONE";

#[tokio::test]
async fn a_thousand_waiting_calls_cost_little() {
    if std::env::var_os(ALONE).is_none() {
        // Other tests in this process would distort the measurement.
        let (_crate, module) = module_path!().split_once("::").unwrap();
        let name = format!("{module}::a_thousand_waiting_calls_cost_little");
        let mut command = std::process::Command::new(std::env::current_exe().unwrap());
        let output = command
            .args([&name, "--exact", "--nocapture"])
            .env(ALONE, "1")
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.success() && text.contains("1 passed"),
            "{output:?}"
        );
        println!("{text}");
        return;
    }
    let mut peer = TestPeer::with_capabilities(
        asking(QuestionKind::Form),
        Revision::V2025_11_25,
        all_capabilities(),
    )
    .await;
    let mut last = Vec::new();
    let mut measured = Vec::new();
    // The first thousand calls include one-time allocations.
    for _ in 0..3 {
        let before = resident();
        for n in 0..1000 {
            let params = json!({"name": "a", "arguments": {"env": "prod", "n": n}, "_meta": {"progressToken": n}});
            peer.request("tools/call", params).await;
            peer.receive().await;
            last.push(peer.receive().await["id"].clone());
        }
        measured.push(resident().saturating_sub(before) / 1000);
    }
    assert_eq!(last.len(), 3000);
    println!("bytes per waiting call: {measured:?}");
    assert!(
        measured[1..].iter().all(|bytes| *bytes < 4096),
        "{measured:?}"
    );
    for id in last {
        peer.answer(&json!({"id": id}), json!({"action": "decline"}))
            .await;
        assert_eq!(text(&peer.receive().await), r#"{"action":"decline"}"#);
    }
    assert_eq!(peer.session.request_quota.of("stdio"), 0);
}
