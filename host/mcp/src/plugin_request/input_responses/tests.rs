//! Tests questions to clients without sessions.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use toolbay_model::{
    CallFailure, CallJournal, CallRejection, CallReply, Digest, QuestionKind, QuestionKindSet,
    QuestionRound, RejectionReason,
};
use toolbay_private::PrivateFolder;

use crate::host::interface::ClientCall;
use crate::host::request_state::RequestStates;
use crate::protocol::revision::Revision;
use crate::testing::stub_host::StubServer;
use crate::testing::test_peer::TestPeer;
use crate::testing::test_questions::{all_capabilities, question, text_reply};

/// The edition of the plugin.
const EDITION: Digest = Digest::new([1; 32]);

type Script = fn(&ClientCall) -> Option<Result<CallReply, CallFailure>>;

fn memory() -> RequestStates {
    RequestStates::in_memory(&[7; 32]).unwrap()
}

fn stored(folder: &Path) -> RequestStates {
    RequestStates::open(PrivateFolder::open(folder, "tests").unwrap(), None).unwrap()
}

async fn client(states: RequestStates, script: Script) -> TestPeer {
    TestPeer::with_capabilities(
        StubServer::scripted(states, script),
        Revision::NEWEST,
        all_capabilities(),
    )
    .await
}

fn ask(call: &ClientCall, questions: &[(&str, QuestionKind)]) -> CallReply {
    let questions = questions
        .iter()
        .map(|(key, kind)| question(key, *kind))
        .collect();
    let journal = CallJournal {
        rounds: call.journal.rounds + 1,
        edition: Some(EDITION),
        ..CallJournal::clone(&call.journal)
    };
    CallReply::Questions(QuestionRound { questions, journal })
}

#[expect(clippy::unnecessary_wraps, reason = "what a script returns")]
/// Asks for `k` unless it is answered, and returns the journal.
fn one(call: &ClientCall) -> Option<Result<CallReply, CallFailure>> {
    if call
        .journal
        .edition
        .is_some_and(|edition| edition != EDITION)
    {
        return Some(Err(CallFailure::Outdated));
    }
    if call.journal.answers.contains_key("k") {
        return Some(Ok(text_reply(&format!("{:?}", call.journal.answers))));
    }
    Some(Ok(ask(call, &[("k", QuestionKind::Form)])))
}

fn state(response: &Value) -> Value {
    let state = response["result"]["requestState"].clone();
    assert!(state.is_string(), "{response}");
    state
}

fn retry(state: &Value) -> Value {
    json!({"name": "a", "requestState": state, "inputResponses": {"k": {"action": "accept", "content": {"name": "Ada"}}}})
}

fn text(response: &Value) -> &str {
    response["result"]["content"][0]["text"]
        .as_str()
        .unwrap_or_else(|| panic!("{response}"))
}

fn reason(response: &Value) -> &str {
    assert_eq!(response["error"]["code"], -32602, "{response}");
    response["error"]["data"]["reason"]
        .as_str()
        .unwrap_or_else(|| panic!("{response}"))
}

#[tokio::test]
async fn the_three_methods_ask_and_go_on() {
    let script: Script = |call| {
        let first = call.journal.answers.is_empty();
        first.then(|| {
            Ok(ask(
                call,
                &QuestionKind::ALL.map(|kind| (kind_key(kind), kind)),
            ))
        })
    };
    let mut peer = client(memory(), script).await;
    let mut shown = String::new();
    for (method, params, member) in [
        ("tools/call", json!({"name": "a"}), "content"),
        (
            "prompts/get",
            json!({"name": "a", "arguments": {"x": "1"}}),
            "messages",
        ),
        ("resources/read", json!({"uri": "test://a"}), "contents"),
    ] {
        let mut response = peer.request_response(method, params.clone()).await;
        let mut params = params;
        params["requestState"] = state(&response);
        params["inputResponses"] = json!({"Roots": {"roots": []}});
        response["result"]["requestState"] = "STATE".into();
        writeln!(shown, "{response}").unwrap();
        let response = peer.request_response(method, params).await;
        assert_eq!(response["result"]["resultType"], "complete", "{response}");
        assert!(response["result"].get(member).is_some(), "{response}");
    }
    insta::assert_snapshot!(shown);
}

fn kind_key(kind: QuestionKind) -> &'static str {
    match kind {
        QuestionKind::Form => "Form",
        QuestionKind::Url => "Url",
        QuestionKind::Sampling => "Sampling",
        QuestionKind::SamplingWithTools => "SamplingWithTools",
        QuestionKind::Roots => "Roots",
    }
}

#[tokio::test]
async fn lists_and_completions_do_not_ask() {
    let mut peer = client(memory(), |call| {
        assert_eq!(call.answerable, QuestionKindSet::default());
        None
    })
    .await;
    let params = json!({
        "ref": {"type": "ref/prompt", "name": "a"}, "argument": {"name": "x", "value": ""}, "inputResponses": null,
    });
    assert_eq!(
        peer.request_response("completion/complete", params).await["result"]["resultType"],
        "complete"
    );
    assert_eq!(
        peer.request_response("tools/list", json!({"inputResponses": {}}))
            .await["result"]["resultType"],
        "complete"
    );
}

#[tokio::test]
async fn a_first_request_may_have_the_answers() {
    let mut peer = client(memory(), one).await;
    let answers = json!({"k": {"n": 1}, "other": {}, "odd": 7});
    let response = peer
        .request_response(
            "tools/call",
            json!({"name": "a", "inputResponses": answers}),
        )
        .await;
    assert_eq!(text(&response), r#"{"k": "{\"n\":1}", "other": "{}"}"#);
    let response = peer
        .request_response("tools/call", json!({"name": "a", "inputResponses": null}))
        .await;
    assert_eq!(response["error"]["code"], -32602);
    // A question without a valid answer is asked again.
    let response = peer
        .request_response(
            "tools/call",
            json!({"name": "a", "inputResponses": {"k": 12345}}),
        )
        .await;
    assert_eq!(response["result"]["resultType"], "input_required");
}

#[tokio::test]
async fn a_missing_answer_is_asked_again_and_other_keys_are_ignored() {
    let mut peer = client(memory(), one).await;
    let first = state(
        &peer
            .request_response("tools/call", json!({"name": "a"}))
            .await,
    );
    for wrong in [json!({}), json!({"x": {"n": 1}}), json!({"k": []})] {
        let again = json!({"name": "a", "requestState": first, "inputResponses": wrong});
        let response = peer.request_response("tools/call", again).await;
        if response.get("error").is_some() {
            assert_eq!(reason(&response), "used");
            continue;
        }
        let second = state(&response);
        assert_ne!(second, first);
        let mut params = retry(&second);
        params["inputResponses"]["x"] = json!({"n": 1});
        assert_eq!(
            text(&peer.request_response("tools/call", params).await),
            r#"{"k": "{\"action\":\"accept\",\"content\":{\"name\":\"Ada\"}}"}"#
        );
    }
}

#[tokio::test]
async fn an_answer_of_an_earlier_round_cannot_be_changed() {
    let script: Script = |call| {
        let answers = &call.journal.answers;
        Some(Ok(if !answers.contains_key("a") {
            ask(call, &[("a", QuestionKind::Form)])
        } else if !answers.contains_key("b") {
            ask(call, &[("b", QuestionKind::Form)])
        } else {
            text_reply(&format!("{} {answers:?}", call.journal.rounds))
        }))
    };
    let mut peer = client(memory(), script).await;
    let first = state(
        &peer
            .request_response("tools/call", json!({"name": "a"}))
            .await,
    );
    let params = json!({"name": "a", "requestState": first, "inputResponses": {"a": {"n": 1}}});
    let second = state(&peer.request_response("tools/call", params).await);
    let params = json!({"name": "a", "requestState": second, "inputResponses": {"a": {"n": 2}, "b": {"n": 3}}});
    let response = peer.request_response("tools/call", params).await;
    assert_eq!(text(&response), r#"2 {"a": "{\"n\":1}", "b": "{\"n\":3}"}"#);
}

#[tokio::test]
async fn every_wrong_state_has_its_reason() {
    let mut peer = client(memory(), one).await;
    let params = json!({"name": "a", "arguments": {"env": "prod"}});
    let sealed = state(&peer.request_response("tools/call", params).await);
    let sealed = sealed.as_str().unwrap();
    let changed = format!(
        "{}{}",
        &sealed[..sealed.len() - 1],
        if sealed.ends_with('A') { "B" } else { "A" }
    );
    let with = |name: &str, arguments: Value, state: &str| json!({"name": name, "arguments": arguments, "requestState": state, "inputResponses": {"k": {}}});
    let prod = || json!({"env": "prod"});
    for (params, expected) in [
        (with("a", prod(), &changed), "tampered"),
        (with("a", prod(), ""), "tampered"),
        (with("a", prod(), &"A".repeat(3 << 20)), "tampered"),
        (with("b", prod(), sealed), "foreign"),
        (with("a", json!({"env": "test"}), sealed), "foreign"),
        (with("a", json!({}), sealed), "foreign"),
    ] {
        assert_eq!(
            reason(&peer.request_response("tools/call", params).await),
            expected
        );
    }
    let prompt = json!({"name": "a", "arguments": {"env": "prod"}, "requestState": sealed});
    assert_eq!(
        reason(&peer.request_response("prompts/get", prompt).await),
        "foreign"
    );
    assert!(
        text(
            &peer
                .request_response("tools/call", with("a", prod(), sealed))
                .await
        )
        .contains('k')
    );
    let replayed = peer
        .request_response("tools/call", with("a", prod(), sealed))
        .await;
    assert_eq!(reason(&replayed), "used");
    let said = replayed["error"]["message"].as_str().unwrap();
    assert_eq!(
        said,
        "requestState was used before. Send the request again without requestState."
    );
    let odd = peer
        .request_response("tools/call", json!({"name": "a", "requestState": 7}))
        .await;
    assert_eq!(odd["error"]["code"], -32602);
}

#[tokio::test]
async fn another_edition_of_the_plugin_refuses_the_state() {
    let states = memory();
    let mut old = client(states.clone(), |call| {
        let CallReply::Questions(mut interview) = ask(call, &[("k", QuestionKind::Form)]) else {
            return None;
        };
        interview.journal.edition = Some(Digest::new([2; 32]));
        Some(Ok(CallReply::Questions(interview)))
    })
    .await;
    let sealed = state(
        &old.request_response("tools/call", json!({"name": "a"}))
            .await,
    );
    let mut new = client(states, one).await;
    assert_eq!(
        reason(&new.request_response("tools/call", retry(&sealed)).await),
        "outdated"
    );
}

#[tokio::test]
async fn a_state_outlives_a_restart_and_its_use_does_too() {
    let dir = tempfile::tempdir().unwrap();
    let mut first = client(stored(dir.path()), one).await;
    let sealed = state(
        &first
            .request_response("tools/call", json!({"name": "a"}))
            .await,
    );
    drop(first);
    let mut second = client(stored(dir.path()), one).await;
    assert!(text(&second.request_response("tools/call", retry(&sealed)).await).contains("Ada"));
    assert_eq!(
        reason(&second.request_response("tools/call", retry(&sealed)).await),
        "used"
    );
    drop(second);
    let mut third = client(stored(dir.path()), one).await;
    assert_eq!(
        reason(&third.request_response("tools/call", retry(&sealed)).await),
        "used"
    );
    let other = tempfile::tempdir().unwrap();
    let mut elsewhere = client(stored(other.path()), one).await;
    assert_eq!(
        reason(
            &elsewhere
                .request_response("tools/call", retry(&sealed))
                .await
        ),
        "tampered"
    );
}

#[tokio::test]
async fn a_state_whose_entry_was_not_admitted_can_be_used_again() {
    let free = AtomicBool::new(false);
    let host = StubServer::scripted(memory(), move |call| {
        if call.journal.answers.is_empty() || free.swap(true, Ordering::Relaxed) {
            return one(call);
        }
        Some(Err(CallFailure::Rejected(CallRejection {
            reason: RejectionReason::Disabled,
            retry_after: Some(Duration::from_secs(1)),
        })))
    });
    let mut peer = TestPeer::with_capabilities(host, Revision::NEWEST, all_capabilities()).await;
    let sealed = state(
        &peer
            .request_response("tools/call", json!({"name": "a"}))
            .await,
    );
    let rejected = peer.request_response("tools/call", retry(&sealed)).await;
    assert_eq!(rejected["result"]["_meta"]["dev.toolbay/error"], "disabled");
    assert!(text(&peer.request_response("tools/call", retry(&sealed)).await).contains("Ada"));
    assert_eq!(
        reason(&peer.request_response("tools/call", retry(&sealed)).await),
        "used"
    );
}

#[tokio::test]
async fn the_same_retry_twice_at_once_enters_once() {
    let dir = tempfile::tempdir().unwrap();
    let mut peer = client(stored(dir.path()), one).await;
    let sealed = state(
        &peer
            .request_response("tools/call", json!({"name": "a"}))
            .await,
    );
    for _ in 0..20 {
        peer.request("tools/call", retry(&sealed)).await;
    }
    let mut entered = 0;
    for _ in 0..20 {
        let response = peer.receive().await;
        if response.get("result").is_some() {
            entered += 1;
        } else {
            assert_eq!(reason(&response), "used");
        }
    }
    assert_eq!(entered, 1);
}

#[tokio::test]
async fn only_kinds_that_this_request_declared_are_asked() {
    let host: Arc<StubServer> = StubServer::scripted(memory(), |call| {
        let kinds = QuestionKind::ALL
            .into_iter()
            .filter(|kind| call.answerable.contains(*kind));
        Some(Ok(text_reply(&format!("{:?}", kinds.collect::<Vec<_>>()))))
    });
    let sees = async |capabilities: Value| {
        let mut peer =
            TestPeer::with_capabilities(host.clone(), Revision::NEWEST, capabilities).await;
        text(
            &peer
                .request_response("tools/call", json!({"name": "a"}))
                .await,
        )
        .to_owned()
    };
    assert_eq!(sees(json!({})).await, "[]");
    assert_eq!(sees(json!({"sampling": {}})).await, "[Sampling]");
    assert_eq!(
        sees(json!({"elicitation": {}, "roots": {}})).await,
        "[Form, Roots]"
    );
    assert_eq!(sees(json!({"elicitation": {"url": {}}})).await, "[Url]");
    // The sandbox asks anyway: no question is sent.
    let host = StubServer::scripted(memory(), one);
    let mut peer =
        TestPeer::with_capabilities(host, Revision::NEWEST, json!({"sampling": {}})).await;
    let error = &peer
        .request_response("tools/call", json!({"name": "a"}))
        .await["error"];
    assert_eq!(error["code"], -32021);
    assert_eq!(
        error["data"],
        json!({"requiredCapabilities": {"elicitation": {"form": {}}}})
    );
}

#[tokio::test]
async fn in_a_session_these_members_mean_nothing() {
    let host = StubServer::scripted(memory(), |call| {
        Some(Ok(text_reply(&format!("{:?}", call.journal.answers))))
    });
    let mut peer =
        TestPeer::with_capabilities(host, Revision::V2025_11_25, all_capabilities()).await;
    let params = json!({"name": "a", "inputResponses": {"k": {}}, "requestState": "x"});
    assert_eq!(
        text(&peer.request_response("tools/call", params).await),
        "{}"
    );
}
