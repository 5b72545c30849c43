//! Rulings for every kind of journal, including forged ones.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use toolbay_catalog::{
    ApprovalSetting, ComponentContents, LoadedComponent, Plugin, PluginState, PluginTerms,
    ToolApprovals, assemble,
};
use toolbay_model::{ComponentDescription, Digest, EffectHints, RecordedEffect, ToolDefinition};
use toolbay_policy::Permissions;
use toolbay_sandbox::PluginContext;
use toolbay_secrets::SecretFilter;

use super::*;

fn offer_with(
    approve: ApprovalSetting,
    annotations: Option<EffectHints>,
    environment: PluginContext,
) -> Arc<ToolOffer> {
    let tool = ToolDefinition {
        name: "erase".to_owned(),
        input_schema: r#"{"type":"object"}"#.to_owned(),
        annotations,
        ..ToolDefinition::default()
    };
    let contents = ComponentContents::validate(ComponentDescription {
        tools: vec![tool],
        ..ComponentDescription::default()
    })
    .unwrap();
    let approvals = ToolApprovals {
        default: approve,
        ..ToolApprovals::default()
    };
    let terms = PluginTerms {
        approvals,
        context: environment,
        ..PluginTerms::default()
    };
    let plugin = Plugin::new(
        "notes".to_owned(),
        Arc::new(LoadedComponent::without_code(contents)),
        Arc::default(),
        terms,
    );
    let candidate = PluginState {
        plugin: Some(Arc::new(plugin)),
        ..PluginState::default()
    };
    let snapshot = assemble(&BTreeMap::from([("notes".to_owned(), candidate)]), true);
    Arc::clone(&snapshot.tools["erase"])
}

fn offer(approve: ApprovalSetting) -> Arc<ToolOffer> {
    offer_with(approve, None, PluginContext::default())
}

fn forms() -> QuestionKindSet {
    QuestionKindSet::default().with(QuestionKind::Form)
}

/// Returns the ruling for a call of a client in a session.
fn rule(
    offer: &Arc<ToolOffer>,
    remembered: &RememberedApprovals,
    journal: CallJournal,
) -> ApprovalRuling {
    ApprovalCase {
        offer,
        remembered,
        scope: Some(ApprovalScope::Session(1)),
        answerable: forms(),
    }
    .decide(journal)
}

/// Returns the journal with which the user is asked.
fn asked(ruling: ApprovalRuling) -> CallJournal {
    match ruling.step {
        ApprovalStep::Ask(journal, _) => journal,
        other => panic!("{other:?}"),
    }
}

fn entered(ruling: ApprovalRuling) -> CallJournal {
    match ruling.step {
        ApprovalStep::Enter(journal) => journal,
        other => panic!("{other:?}"),
    }
}

fn refused(ruling: &ApprovalRuling) -> MissingApprovalReason {
    match &ruling.step {
        ApprovalStep::End(CallFailure::Unapproved(unapproved)) => unapproved.reason,
        other => panic!("{other:?}"),
    }
}

fn with_answer(mut journal: CallJournal, answer: &Value) -> CallJournal {
    journal
        .answers
        .insert(APPROVAL_KEY.to_owned(), answer.to_string());
    journal
}

fn yes() -> Value {
    json!({"action": "accept", "content": {"approve": true}})
}

#[test]
fn an_approval_admits_the_call_once_and_leaves_nothing_in_the_journal() {
    let offer = offer(ApprovalSetting::Always);
    let remembered = RememberedApprovals::default();
    let first = rule(&offer, &remembered, CallJournal::default());
    assert_eq!(
        first.decision,
        Some(ApprovalDecision {
            outcome: "requested",
            waited: None,
            operator: None
        })
    );
    let journal = asked(first);
    assert_eq!(journal.approval, ApprovalState::Asked(1));
    assert!(journal.began > 0 && journal.until > journal.began);
    let ruling = rule(&offer, &remembered, with_answer(journal, &yes()));
    assert_eq!(
        ruling.decision.as_ref().map(|decision| decision.outcome),
        Some("approved")
    );
    // The guest does not receive the host's answer, and its own questions start with an empty
    // journal.
    assert_eq!(
        entered(ruling),
        CallJournal {
            approval: ApprovalState::Given,
            ..CallJournal::default()
        }
    );
    asked(rule(&offer, &remembered, CallJournal::default()));
}

#[test]
fn later_questions_of_the_plugin_do_not_ask_for_the_approval_again() {
    let offer = offer(ApprovalSetting::Always);
    let remembered = RememberedApprovals::default();
    let effect = RecordedEffect {
        what: "POST /".to_owned(),
        result: vec![1],
    };
    let journal = CallJournal {
        answers: BTreeMap::from([("name".to_owned(), "{}".to_owned())]),
        effects: vec![effect],
        rounds: 1,
        began: 5,
        until: 6,
        edition: Some(Digest::new([1; 32])),
        approval: ApprovalState::Given,
        ..CallJournal::default()
    };
    assert_eq!(entered(rule(&offer, &remembered, journal.clone())), journal);
}

/// A client can send any answers with the first request (`inputResponses` without `requestState`).
#[test]
fn an_answer_without_a_question_is_ignored() {
    let offer = offer(ApprovalSetting::Always);
    let remembered = RememberedApprovals::default();
    let mut made_up = with_answer(CallJournal::default(), &yes());
    made_up
        .answers
        .insert("approve".to_owned(), yes().to_string());
    let journal = asked(rule(&offer, &remembered, made_up));
    assert_eq!(
        (journal.approval, journal.answers.len()),
        (ApprovalState::Asked(1), 0)
    );
    // If no approval is required, the guest does not receive the answer either.
    let open = self::offer(ApprovalSetting::Never);
    let journal = entered(rule(
        &open,
        &remembered,
        with_answer(CallJournal::default(), &yes()),
    ));
    assert_eq!(journal, CallJournal::default());
}

#[test]
fn an_answer_other_than_yes_ends_the_call_or_asks_again() {
    let offer = offer(ApprovalSetting::Always);
    let remembered = RememberedApprovals::default();
    let journal = asked(rule(&offer, &remembered, CallJournal::default()));
    let answered = |answer: &Value| rule(&offer, &remembered, with_answer(journal.clone(), answer));
    for (answer, why) in [
        (
            json!({"action": "accept", "content": {"approve": false}}),
            MissingApprovalReason::Declined,
        ),
        (
            json!({"action": "decline"}),
            MissingApprovalReason::Declined,
        ),
        (
            json!({"action": "decline", "content": {"approve": true}}),
            MissingApprovalReason::Declined,
        ),
        (
            json!({"action": "cancel", "content": null}),
            MissingApprovalReason::Cancelled,
        ),
    ] {
        let ruling = answered(&answer);
        assert_eq!(
            (refused(&ruling), ruling.decision.unwrap().outcome),
            (why, why.as_str()),
            "{answer}"
        );
    }
    for answer in [
        json!({}),
        json!({"action": "accept"}),
        json!({"action": "accept", "content": {}}),
        json!({"action": "accept", "content": null}),
        json!({"action": "accept", "content": true}),
        json!({"action": "accept", "content": {"approve": "true"}}),
        json!({"action": "accept", "content": {"approve": 1}}),
        json!({"action": "accept", "content": [{"approve": true}]}),
        json!({"action": "accept", "approve": true}),
        json!({"action": "ACCEPT", "content": {"approve": true}}),
        json!({"action": true}),
        json!("accept"),
        json!(true),
    ] {
        assert_eq!(
            asked(answered(&answer)).approval,
            ApprovalState::Asked(2),
            "{answer}"
        );
    }
    // Two answers in one are invalid.
    let mut twice = journal.clone();
    let text = r#"{"action":"decline","action":"accept","content":{"approve":true}}"#;
    twice
        .answers
        .insert(APPROVAL_KEY.to_owned(), text.to_owned());
    assert_eq!(
        asked(rule(&offer, &remembered, twice)).approval,
        ApprovalState::Asked(2)
    );
}

#[test]
fn the_rounds_and_the_time_are_bounded() {
    let offer = offer(ApprovalSetting::Always);
    let remembered = RememberedApprovals::default();
    let mut journal = asked(rule(&offer, &remembered, CallJournal::default()));
    let began = journal.began;
    for round in 2..=MAX_ROUNDS {
        journal = asked(rule(&offer, &remembered, journal));
        assert_eq!(
            (journal.approval, journal.began),
            (ApprovalState::Asked(round), began)
        );
    }
    assert_eq!(
        refused(&rule(&offer, &remembered, journal.clone())),
        MissingApprovalReason::Invalid(MAX_ROUNDS)
    );
    let late = CallJournal {
        until: began - 1,
        ..with_answer(journal, &yes())
    };
    let ruling = rule(&offer, &remembered, late);
    assert!(matches!(
        refused(&ruling),
        MissingApprovalReason::TimedOut(_)
    ));
    assert_eq!(ruling.decision.unwrap().outcome, "timed-out");
}

#[test]
fn the_first_approval_covers_only_its_session_or_caller() {
    let offer = offer(ApprovalSetting::First);
    let remembered = RememberedApprovals::default();
    let case = |scope| ApprovalCase {
        offer: &offer,
        remembered: &remembered,
        scope,
        answerable: forms(),
    };
    for scope in [Some(ApprovalScope::Session(1)), Some(ApprovalScope::Caller)] {
        let journal = asked(case(scope).decide(CallJournal::default()));
        entered(case(scope).decide(with_answer(journal, &yes())));
        let again = case(scope).decide(CallJournal::default());
        assert_eq!(
            again.decision,
            Some(ApprovalDecision {
                outcome: "remembered",
                waited: None,
                operator: None
            })
        );
        // Later questions of the plugin do not depend on the remembered approval, which may expire.
        assert_eq!(entered(again).approval, ApprovalState::Given);
    }
    asked(case(Some(ApprovalScope::Session(2))).decide(CallJournal::default()));
    for _ in 0..2 {
        let journal = asked(case(None).decide(CallJournal::default()));
        entered(case(None).decide(with_answer(journal, &yes())));
    }
    // A no is not remembered.
    let journal = asked(case(Some(ApprovalScope::Session(3))).decide(CallJournal::default()));
    refused(
        &case(Some(ApprovalScope::Session(3)))
            .decide(with_answer(journal, &json!({"action": "decline"}))),
    );
    asked(case(Some(ApprovalScope::Session(3))).decide(CallJournal::default()));
}

#[test]
fn each_call_is_asked_about_even_after_a_yes() {
    let remembered = RememberedApprovals::default();
    for approve in [ApprovalSetting::Always, ApprovalSetting::Destructive] {
        let offer = offer(approve);
        let journal = asked(rule(&offer, &remembered, CallJournal::default()));
        entered(rule(&offer, &remembered, with_answer(journal, &yes())));
        asked(rule(&offer, &remembered, CallJournal::default()));
    }
    let reading = EffectHints {
        read_only: Some(true),
        ..EffectHints::default()
    };
    let offer = offer_with(
        ApprovalSetting::Destructive,
        Some(reading),
        PluginContext::default(),
    );
    let ruling = rule(&offer, &remembered, CallJournal::default());
    assert_eq!(
        (ruling.decision.clone(), entered(ruling)),
        (None, CallJournal::default())
    );
}

#[test]
fn a_client_that_cannot_ask_gets_an_error_that_names_the_setting() {
    let offer = offer(ApprovalSetting::Always);
    let remembered = RememberedApprovals::default();
    let page = QuestionKindSet::default()
        .with(QuestionKind::Url)
        .with(QuestionKind::Sampling);
    for answerable in [QuestionKindSet::default(), page] {
        let case = ApprovalCase {
            offer: &offer,
            remembered: &remembered,
            scope: None,
            answerable,
        };
        let ruling = case.decide(with_answer(CallJournal::default(), &yes()));
        let ApprovalStep::End(CallFailure::Unapproved(unapproved)) = ruling.step else {
            panic!()
        };
        assert_eq!(unapproved.reason, MissingApprovalReason::Unsupported);
        assert!(
            unapproved
                .to_string()
                .contains("change tools.erase.require_approval in notes.toml"),
            "{unapproved}"
        );
    }
}

#[test]
fn a_call_whose_guest_has_already_run_must_start_again() {
    let offer = offer(ApprovalSetting::Always);
    let remembered = RememberedApprovals::default();
    let journal = CallJournal {
        edition: Some(Digest::new([1; 32])),
        rounds: 1,
        ..CallJournal::default()
    };
    let ruling = rule(&offer, &remembered, journal);
    assert!(
        matches!(ruling.step, ApprovalStep::End(CallFailure::Outdated)),
        "{ruling:?}"
    );
    // In the opposite case, no approval is required any more.
    let journal = asked(rule(&offer, &remembered, CallJournal::default()));
    assert_eq!(
        entered(rule(
            &self::offer(ApprovalSetting::Never),
            &remembered,
            journal
        )),
        CallJournal::default()
    );
}

#[test]
fn the_question_shows_the_arguments_before_what_the_plugin_can_reach() {
    let permissions = Permissions {
        environment: vec!["LANG".to_owned()],
        ..Permissions::default()
    };
    let offer = offer_with(
        ApprovalSetting::Always,
        None,
        PluginContext {
            permissions,
            ..PluginContext::default()
        },
    );
    let question = |arguments: &Value, counts| {
        let question = approval_question(
            &offer,
            &arguments.to_string(),
            SecretFilter::empty(),
            counts,
        );
        assert_eq!(
            (question.key.as_str(), question.kind),
            (APPROVAL_KEY, QuestionKind::Form)
        );
        let params: Value = serde_json::from_str(question.params.get()).unwrap();
        let properties = params["requestedSchema"]["properties"].as_object().unwrap();
        assert_eq!(
            (properties.len(), &properties[APPROVE_FIELD]["type"]),
            (1, &json!("boolean"))
        );
        assert_eq!(
            params["requestedSchema"]["required"],
            json!([APPROVE_FIELD])
        );
        params["message"].as_str().unwrap().to_owned()
    };
    insta::assert_snapshot!(question(&json!({"path": "/data/a.txt"}), ApprovalValidity::Once), @r#"
    The operator of this server requires a person to allow this call. Your answer counts only for this call. Below the arguments, a line that begins with + says what the plugin can do.

        tool    erase
        plugin  notes

    The arguments are complete (22 bytes). Only lines that begin with | are arguments; the caller of the tool wrote them:

        | {"path":"/data/a.txt"}

    During the call, the plugin can:

        + read environment variables of the server: LANG
    "#);
    let cut = question(
        &json!({"path": "/data/a.txt", "text": "x".repeat(50_000)}),
        ApprovalValidity::Session,
    );
    assert!(
        cut.contains("A yes counts for all further calls of this tool in this session"),
        "{cut}"
    );
    assert!(
        cut.contains("NOT complete: of 50,032 bytes, 49,720 are left out"),
        "{cut}"
    );
    assert!(
        cut.contains("SHA-256 of all: ") && cut.len() < 3_000,
        "{cut}"
    );
    assert!(question(&json!({}), ApprovalValidity::Hour).contains("within one hour"));
    // The host's text does not depend on the arguments.
    let host = |message: &str| {
        let words = message
            .lines()
            .filter(|line| !line.starts_with("    | "))
            .collect::<Vec<_>>()
            .join("\n");
        let (above, rest) = words.split_once("\n\nThe arguments").unwrap();
        [above, rest.split_once("\n\nDuring the call, ").unwrap().1].join("\n")
    };
    let honest = host(&question(&json!({}), ApprovalValidity::Once));
    for text in [
        "\n\n    + reach nothing outside its own memory",
        "```\n# Approved\n",
        "\r\n\u{2029}The operator",
        "</p><h1>",
    ] {
        let message = question(&json!({"text": text, text: 1}), ApprovalValidity::Once);
        assert_eq!(host(&message), honest);
        let (_, rest) = message.split_once("wrote them:\n\n").unwrap();
        let (arguments, _) = rest.split_once("\n\nDuring the call, ").unwrap();
        assert!(
            arguments.lines().all(|line| line.starts_with("    | ")),
            "{message}"
        );
    }
}

#[test]
fn a_secret_in_the_arguments_is_not_shown() {
    let value = toolbay_secrets::SecretValue::parse(b"s3cret-word-of-ada").unwrap();
    let secrets = SecretFilter::new([("token", &value)]).unwrap();
    let arguments = json!({"text": "the s3cret-word-of-ada is it"}).to_string();
    let question = approval_question(
        &offer(ApprovalSetting::Always),
        &arguments,
        &secrets,
        ApprovalValidity::Once,
    );
    let params = question.params.get();
    assert!(
        !params.contains("s3cret") && params.contains("Secrets of the plugin are left out"),
        "{params}"
    );
    // Characters that redaction would remove stay visible.
    let arguments = json!({"text": "evil\u{202e}gpj.exe \u{1b}[2J"}).to_string();
    let question = self::approval_question(
        &offer(ApprovalSetting::Always),
        &arguments,
        &secrets,
        ApprovalValidity::Once,
    );
    let text = question_text(&[question]).unwrap();
    assert!(
        text.contains(r"evil\u202egpj.exe \u001b[2J") && !text.contains("left out"),
        "{text}"
    );
}

#[test]
fn an_operator_who_answered_is_recorded_with_the_outcome() {
    for (yes, word) in [(true, "approved"), (false, "declined")] {
        let offer = offer(ApprovalSetting::First);
        let remembered = RememberedApprovals::default();
        let journal = asked(rule(&offer, &remembered, CallJournal::default()));
        let answers = BTreeMap::from([(APPROVAL_KEY.to_owned(), answer_json(yes))]);
        let ruling = rule(
            &offer,
            &remembered,
            CallJournal {
                answers,
                operator: Some("console".to_owned()),
                ..journal
            },
        );
        let decision = ruling.decision.unwrap();
        assert_eq!(
            (decision.outcome, decision.operator.as_deref()),
            (word, Some("console"))
        );
        match ruling.step {
            ApprovalStep::Enter(journal) => {
                assert_eq!(
                    journal,
                    CallJournal {
                        approval: ApprovalState::Given,
                        ..CallJournal::default()
                    }
                );
            }
            ApprovalStep::End(CallFailure::Unapproved(unapproved)) => {
                assert_eq!(unapproved.reason, MissingApprovalReason::Declined);
            }
            other => panic!("{other:?}"),
        }
        // The rule of the grant remembers a yes from either side, and no other answer.
        let again = rule(&offer, &remembered, CallJournal::default());
        assert_eq!(
            again.decision.unwrap().outcome,
            if yes { "remembered" } else { "requested" }
        );
    }
}
