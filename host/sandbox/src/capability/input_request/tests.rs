//! Tests of `input_request`.

use serde_json::json;

use toolbay_secrets::SecretValue;

use super::question_check::MAX_PARAMS_BYTES;
use super::*;
use crate::capability::effects::AskBlocker;
use crate::capability::memory_budget::MemoryBudget;
use crate::context::replay_log::ReplayTape;

fn asking(journal: CallJournal, answerable: QuestionKindSet) -> QuestionContext {
    let journal = Arc::new(journal);
    let effects = SideEffects::new(
        true,
        &journal,
        &Limits::DEFAULT,
        &MemoryBudget::new(Limits::DEFAULT.memory),
        ReplayTape::default(),
    );
    QuestionContext::new(
        answerable,
        journal,
        effects,
        Arc::new(SecretFilter::empty().clone()),
        &Limits::DEFAULT,
    )
}

fn all() -> QuestionKindSet {
    QuestionKind::ALL
        .into_iter()
        .fold(QuestionKindSet::default(), QuestionKindSet::with)
}

fn form(key: &str) -> RawQuestion {
    let properties = json!({"name": {"type": "string", "minLength": 1}});
    let schema = json!({"type": "object", "properties": properties, "required": ["name"]});
    let params = json!({"message": "Who?", "requestedSchema": schema}).to_string();
    RawQuestion {
        key: key.to_owned(),
        kind: RawQuestionKind::Form,
        params,
        is_required: true,
    }
}

fn raw_question(kind: RawQuestionKind, params: &Value) -> RawQuestion {
    RawQuestion {
        key: "k".to_owned(),
        kind,
        params: params.to_string(),
        is_required: true,
    }
}

fn ask_round(asking: &QuestionContext, questions: &[RawQuestion]) -> QuestionRound {
    let error = asking.ask(questions).unwrap_err();
    error.downcast_ref::<SuspendedCall>().unwrap().0.clone()
}

#[test]
fn a_call_ends_with_unanswered_questions_and_continues_with_the_answers() {
    let first = ask_round(
        &asking(CallJournal::default(), all()),
        &[form("a"), form("b")],
    );
    let keys: Vec<&str> = first
        .questions
        .iter()
        .map(|question| question.key.as_str())
        .collect();
    assert_eq!(
        (keys.as_slice(), first.journal.rounds),
        (&["a", "b"][..], 1)
    );
    let mut journal = first.journal;
    // Members without a field in the form are removed.
    let answer =
        json!({"action": "accept", "content": {"name": "Ada\u{202e}", "other": 1}}).to_string();
    journal.answers.insert("a".to_owned(), answer);
    let second = ask_round(&asking(journal.clone(), all()), &[form("a"), form("b")]);
    assert_eq!(
        (second.questions[0].key.as_str(), second.journal.rounds),
        ("b", 2)
    );
    assert_eq!(second.journal.began, journal.began);
    journal
        .answers
        .insert("b".to_owned(), json!({"action": "decline"}).to_string());
    let answers = asking(journal, all())
        .ask(&[form("a"), form("b")])
        .unwrap()
        .unwrap();
    assert_eq!(
        answers[0],
        r#"{"action":"accept","content":{"name":"Ada"}}"#
    );
    assert_eq!(answers[1], r#"{"action":"decline"}"#);
}

#[test]
fn a_question_with_an_invalid_answer_is_asked_again_with_the_reason() {
    let mut messages = Vec::new();
    for wrong in [
        json!({"action": "accept", "content": {}}),
        json!({"action": "accept", "content": {"name": ""}}),
        json!({"action": "accept", "content": {"name": 7}}),
        json!({"action": "accept"}),
        json!({"action": "perhaps"}),
        json!([]),
        json!(12345),
    ] {
        let mut journal = CallJournal::default();
        journal.answers.insert("a".to_owned(), wrong.to_string());
        let repeated = ask_round(&asking(journal, all()), &[form("a")]).questions;
        let params: Value = serde_json::from_str(repeated[0].params.get()).unwrap();
        messages.push(params["message"].as_str().unwrap().to_owned());
        assert_eq!(repeated.len(), 1, "{wrong}");
    }
    insta::assert_snapshot!(messages.join("\n").replace("Who?\n\nThe last answer is invalid: ", ""), @r#"
        "name" is a required property
        name: "" is shorter than 1 character
        name: 7 is not of type "string"
        it has no `content`
        it has no `action` that is accept, decline or cancel
        it is not a JSON object
        it is not a JSON object
        "#);
}

#[test]
fn unsupported_questions_end_the_call_or_are_reported() {
    let asking = asking(
        CallJournal::default(),
        QuestionKindSet::default().with(QuestionKind::Form),
    );
    let roots = raw_question(RawQuestionKind::Roots, &json!({}));
    let error = asking.ask(&[form("a"), roots.clone()]).unwrap_err();
    let incapable = error
        .downcast_ref::<MissingCapability>()
        .unwrap()
        .to_call_error();
    assert_eq!(incapable, CallError::Incapable(vec![QuestionKind::Roots]));
    let refused = asking
        .ask(&[RawQuestion {
            is_required: false,
            ..roots
        }])
        .unwrap()
        .unwrap_err();
    assert_eq!(
        refused,
        QuestionRefusal::Unsupported("the client does not support roots/list".to_owned())
    );
}

#[test]
fn a_question_that_makes_no_sense_is_refused_with_the_reason() {
    let asking = asking(CallJournal::default(), all());
    let refused = |questions: Vec<RawQuestion>| match asking.ask(&questions) {
        Ok(Err(QuestionRefusal::Invalid(why))) => why,
        other => panic!("{other:?}"),
    };
    let message = json!({"role": "user", "content": {"type": "text", "text": "x"}});
    let cases = [
        vec![form("")],
        vec![form("two words")],
        vec![form(&"k".repeat(65))],
        vec![form("a"), form("a")],
        vec![form("a"); 17],
        vec![raw_question(RawQuestionKind::Roots, &json!([]))],
        vec![raw_question(
            RawQuestionKind::Roots,
            &json!({"x": "y".repeat(MAX_PARAMS_BYTES)}),
        )],
        vec![raw_question(
            RawQuestionKind::Roots,
            &json!({"x": vec![0; 5000]}),
        )],
        vec![raw_question(
            RawQuestionKind::Url,
            &json!({"url": "https://a.example"}),
        )],
        vec![raw_question(
            RawQuestionKind::Url,
            &json!({"message": "m", "url": "http://a.example"}),
        )],
        vec![raw_question(
            RawQuestionKind::Url,
            &json!({"message": "m", "url": "http://localhost.evil.example"}),
        )],
        vec![raw_question(
            RawQuestionKind::Url,
            &json!({"message": "m", "url": "javascript:alert(1)"}),
        )],
        vec![raw_question(
            RawQuestionKind::Sampling,
            &json!({"messages": [], "maxTokens": 1}),
        )],
        vec![raw_question(
            RawQuestionKind::Sampling,
            &json!({"messages": [message], "maxTokens": 0}),
        )],
        vec![raw_question(
            RawQuestionKind::Sampling,
            &json!({"messages": [message], "maxTokens": 1, "tools": {}}),
        )],
        vec![raw_question(
            RawQuestionKind::Form,
            &json!({"message": "m"}),
        )],
    ];
    let messages: Vec<String> = cases.into_iter().map(refused).collect();
    insta::assert_snapshot!(messages.join("\n"));
}

#[test]
fn the_host_of_a_page_is_the_one_that_it_seems() {
    let asking = asking(CallJournal::default(), all());
    for url in [
        "https://a.example/x?y",
        "https://a.example:8443/@b?c@d#e@f",
        "https://bücher.example/%5C%40",
        "HTTPS://A.example",
        "http://localhost:8080/",
        "http://LOCALHOST/@x",
        "http://[::1]:1/",
        "http://[0:0:0:0:0:0:0:1]/",
        "http://127.0.0.1",
    ] {
        ask_round(
            &asking,
            &[raw_question(
                RawQuestionKind::Url,
                &json!({"message": "m", "url": url}),
            )],
        );
    }
    let refused = |url: &&str| match asking.ask(&[raw_question(
        RawQuestionKind::Url,
        &json!({"message": "m", "url": url}),
    )]) {
        Ok(Err(QuestionRefusal::Invalid(why))) => why.replace("question \"k\": ", ""),
        other => panic!("{url}: {other:?}"),
    };
    let messages: Vec<String> = [
        "http://localhost:80@evil.example/",
        "http://localhost@evil.example/",
        "http://127.0.0.1:80@evil.example/",
        "http://[::1]@evil.example/",
        "http://localhost%40evil.example/",
        "http://localhost%2Eevil.example/",
        "http://localhost\\@evil.example/",
        "http://evil.example\\@localhost/",
        "http://evil.example#@localhost/",
        "http://evil.example?@localhost/",
        "http:/\tlocalhost/",
        "http://local\nhost/",
        "http://localhost.evil.example/",
        "http://[::2]/",
        "http://127.0.0.2/",
        "http://[::ffff:127.0.0.1]/",
        "https://bank.com@evil.example/",
        "https://bank.com:443@evil.example/",
        "https://@evil.example/",
        "https://bank.com%2F@evil.example/",
        "https://b%61nk.com/",
        "https:evil.example",
        "https:/evil.example",
        "https:///evil.example",
        "https://",
        "https://[::1",
        "https://a.example:99999/",
        "//evil.example",
        "javascript://localhost/%0aalert(1)",
        "data:text/html,x",
        "",
    ]
    .iter()
    .map(refused)
    .collect();
    insta::assert_snapshot!(messages.join("\n"));
}

#[test]
fn rounds_and_time_are_bounded() {
    let often = CallJournal {
        rounds: 8,
        began: 1,
        ..CallJournal::default()
    };
    let limit = |journal| {
        *asking(journal, all())
            .ask(&[form("a")])
            .unwrap_err()
            .downcast_ref::<Limit>()
            .unwrap()
    };
    assert_eq!(limit(often), Limit::AskRounds(8));
    let expired = CallJournal {
        rounds: 1,
        began: 1,
        ..CallJournal::default()
    };
    assert_eq!(limit(expired), Limit::AskTime(Limits::DEFAULT.ask_timeout));
}

#[test]
fn questions_are_refused_if_the_journal_cannot_be_stored() {
    let blocked = asking(CallJournal::default(), all());
    blocked.effects.block_questions(AskBlocker::FileChange);
    let Ok(Err(QuestionRefusal::Invalid(why))) = blocked.ask(&[form("a")]) else {
        panic!()
    };
    assert!(why.contains("changed files"), "{why}");
    let mut large = CallJournal::default();
    large.answers.insert("b".to_owned(), "x".repeat(64 << 10));
    let Ok(Err(QuestionRefusal::Invalid(why))) = asking(large, all()).ask(&[form("a")]) else {
        panic!()
    };
    assert!(why.contains("limits.journal"), "{why}");
}

#[test]
fn a_key_that_contains_a_secret_is_refused_without_repeating_it() {
    let value = SecretValue::parse(b"hunter2-hunter2").unwrap();
    let secrets = SecretFilter::new([("token", &value)]).unwrap();
    for key in ["hunter2-hunter2", "x.hunter2-hunter2.y"] {
        let why = check_questions(&[form(key)], &secrets).unwrap_err();
        assert_eq!(why, "a question's key contains a secret");
    }
    assert!(check_questions(&[form("hunter")], &secrets).is_ok());
}
