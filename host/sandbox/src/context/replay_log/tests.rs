//! Tests of `replay_log`.

use std::collections::BTreeMap;
use std::sync::Arc;

use toolbay_model::ByteBudget;
use toolbay_recording::{
    BinaryText, HostAnswers, HttpAnswer, MissingInput, RandomSeed, RecordingReservation,
    variable_digest,
};
use toolbay_secrets::{SecretFilter, SecretValue};

use super::recorded_clock::REPLAY_TICK_NANOS;
use super::tape_reel::OPERATION_OVERHEAD_BYTES;
use super::*;

fn recording(most: usize) -> ReplayTape {
    ReplayTape::record(
        [3; 32],
        "salt",
        RecordingReservation::new(&ByteBudget::new(1 << 20), most),
    )
}

fn again(tape: &ReplayTape) -> (ReplayTape, Vec<MissingInput>) {
    let (answers, missing) = tape.finish_recording().unwrap().into_answers();
    (
        ReplayTape::replay(ReplayInput {
            answers,
            ..ReplayInput::default()
        }),
        missing.into_iter().collect(),
    )
}

fn did(tape: &ReplayTape, what: &str, result: &[u8]) {
    let number = tape.start_operation(OperationKind::State, what).unwrap();
    tape.record_result(number, result);
}

#[test]
fn a_replay_returns_the_recorded_answers() {
    let tape = recording(1 << 16);
    let looks: Vec<u64> = (0..100).map(|_| tape.read_clock()).collect();
    assert!(looks.is_sorted());
    tape.record_poll(&[0, 2]);
    tape.record_poll(&[]);
    assert!(
        !tape.is_cancelled(|| false) && !tape.is_cancelled(|| false) && tape.is_cancelled(|| true)
    );
    did(&tape, "get a", b"1");
    did(&tape, "get b", b"2");
    let (plays, missing) = again(&tape);
    assert_eq!(missing, []);
    assert_eq!(
        (0..100).map(|_| plays.read_clock()).collect::<Vec<_>>(),
        looks
    );
    assert_eq!(
        plays.read_clock(),
        looks[99] + REPLAY_TICK_NANOS,
        "a guest that looks more often does not wait for ever"
    );
    assert_eq!(
        [
            plays.next_recorded_poll(),
            plays.next_recorded_poll(),
            plays.next_recorded_poll()
        ],
        [Some(vec![0, 2]), Some(vec![]), None]
    );
    assert!(
        !plays.is_cancelled(|| true)
            && !plays.is_cancelled(|| true)
            && plays.is_cancelled(|| false)
    );
    // In another order.
    assert_eq!(
        plays
            .replay_operation(OperationKind::State, "get b")
            .unwrap()
            .unwrap(),
        b"2"
    );
    assert!(
        plays
            .replay_operation(OperationKind::State, "get b")
            .unwrap_err()
            .to_string()
            .contains("does not have: get b.")
    );
    assert!(
        plays
            .replay_operation(OperationKind::Http, "get a")
            .is_err(),
        "that was something else"
    );
    let ReplayDeviation {
        unrecorded: unknown,
        not_repeated: undone,
        missing,
    } = plays.deviation();
    assert_eq!(
        (unknown, undone, missing),
        (
            vec!["get b".to_owned(), "get a".to_owned()],
            vec!["get a".to_owned()],
            vec![]
        )
    );
}

#[test]
fn a_recording_that_does_not_fit_keeps_only_its_outline() {
    let tape = recording(OPERATION_OVERHEAD_BYTES * 2);
    did(&tape, "get a", &[7; 30]);
    assert!(
        tape.start_operation(OperationKind::State, "get b")
            .is_none()
    );
    tape.read_clock();
    let (answers, missing) = tape.finish_recording().unwrap().into_answers();
    assert_eq!(
        missing.into_iter().collect::<Vec<_>>(),
        [MissingInput::TooLarge]
    );
    assert_eq!(
        answers,
        HostAnswers {
            began: answers.began,
            seed: RandomSeed([3; 32]),
            ..HostAnswers::default()
        }
    );
}

#[test]
fn no_secret_is_in_a_recording() {
    let value = SecretValue::parse(b"hunter2-hunter2").unwrap();
    let secrets = Arc::new(SecretFilter::new([("key", &value)]).unwrap());
    let response = |body: &[u8], field: &str| HttpAnswer::Response {
        status: 200,
        fields: vec![("x".to_owned(), BinaryText(field.as_bytes().to_vec()))],
        body: BinaryText(body.to_vec()),
        pieces: vec![u32::try_from(body.len()).unwrap()],
        end: None,
    };
    let recorded = |kind, what: &str, result: &[u8]| {
        let tape = recording(1 << 16);
        tape.set_secrets(&secrets);
        let number = tape
            .start_operation(kind, &tape.redact_description(what))
            .unwrap();
        tape.record_result(number, result);
        let (answers, missing) = tape.finish_recording().unwrap().into_answers();
        let text = serde_json::to_string(&answers).unwrap();
        assert!(!secrets.contains_secret(text.as_bytes()), "{text}");
        (text, missing.into_iter().collect::<Vec<_>>())
    };
    let http = |answer: &HttpAnswer| postcard::to_allocvec(answer).unwrap();
    let (text, missing) = recorded(
        OperationKind::Http,
        "GET http://a/?k=hunter2-hunter2",
        &http(&response(b"my hunter2-hunter2", "hunter2-hunter2")),
    );
    assert!(
        text.contains("?k=[secret:key]") && text.contains("my [secret:key]"),
        "{text}"
    );
    assert_eq!(missing, []);
    let binary = [b"\xff".as_slice(), b"hunter2-hunter2"].concat();
    assert_eq!(
        recorded(OperationKind::Http, "GET /", &http(&response(&binary, ""))).1,
        [MissingInput::Secret]
    );
    assert_eq!(
        recorded(OperationKind::State, "get a", b"\x0fhunter2-hunter2").1,
        [MissingInput::Secret]
    );
    assert_eq!(recorded(OperationKind::State, "get a", b"\x03abc").1, []);
    let tape = recording(1 << 16);
    tape.set_secrets(&secrets);
    assert_eq!(
        tape.variable("KEY", || Some("hunter2-hunter2".to_owned()))
            .as_deref(),
        Some("hunter2-hunter2")
    );
    let (answers, _) = tape.finish_recording().unwrap().into_answers();
    assert_eq!(
        answers.marked,
        BTreeMap::from([("KEY".to_owned(), "[secret:key]".to_owned())])
    );
    assert!(answers.redacted && answers.variables.is_empty());
}

#[test]
fn variables_are_recorded_as_digests_and_supplied_for_a_replay() {
    let tape = recording(1 << 16);
    assert_eq!(
        tape.variable("LANG", || Some("C.UTF-8".to_owned()))
            .as_deref(),
        Some("C.UTF-8")
    );
    assert_eq!(tape.variable("NONE", || None), None);
    let (answers, _) = tape.finish_recording().unwrap().into_answers();
    assert_eq!(
        answers.variables,
        BTreeMap::from([(
            "LANG".to_owned(),
            variable_digest("salt", "LANG", "C.UTF-8")
        )])
    );
    assert!(!answers.redacted && answers.marked.is_empty());
    let variables = BTreeMap::from([("LANG".to_owned(), "C".to_owned())]);
    let plays = ReplayTape::replay(ReplayInput {
        answers,
        variables,
        ..ReplayInput::default()
    });
    assert_eq!(plays.variable("LANG", || panic!()).as_deref(), Some("C"));
    assert_eq!(plays.variable("HOME", || panic!()), None);
}
