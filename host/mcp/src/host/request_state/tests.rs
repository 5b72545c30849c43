//! Tests attacks on states, and the use of states by honest clients.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use proptest::prelude::*;
use serde_json::json;
use toolbay_model::{ApprovalState, CallRequest, Digest, RecordedEffect};

use super::*;

/// A clock that tests set, in milliseconds.
type TestClock = Arc<AtomicU64>;

const MINUTE: u64 = 60_000;

fn clock() -> TestClock {
    Arc::new(AtomicU64::new(1_000 * MINUTE))
}

fn states(folder: Option<&Path>, clock: &TestClock) -> RequestStates {
    match folder {
        Some(folder) => stored(folder, None, clock),
        None => RequestStates::from_parts(
            UsedStates::in_memory(StateIdentity::with_own_key([7; KEY_BYTES]).unwrap()),
            reader(clock),
        ),
    }
}

fn stored(folder: &Path, key: Option<[u8; KEY_BYTES]>, clock: &TestClock) -> RequestStates {
    RequestStates::open_with_clock(
        PrivateFolder::open(folder, "tests").unwrap(),
        key,
        reader(clock),
    )
    .unwrap()
}

fn reader(clock: &TestClock) -> Clock {
    let clock = Arc::clone(clock);
    Box::new(move || clock.load(Ordering::Relaxed))
}

fn journal() -> CallJournal {
    let effect = RecordedEffect {
        what: "POST https://a.example/".into(),
        result: vec![0, 255, 7],
    };
    CallJournal {
        answers: BTreeMap::from([(
            "name".into(),
            r#"{"action":"accept","content":{"name":"Ada"}}"#.into(),
        )]),
        effects: vec![effect],
        rounds: 2,
        began: 5,
        until: 6,
        edition: Some(Digest::new([3; 32])),
        approval: ApprovalState::Given,
        operator: None,
        subject: None,
    }
}

fn call(arguments: &serde_json::Value) -> CallRequest {
    CallRequest::Tool {
        name: "deploy".into(),
        arguments: arguments.as_object().unwrap().clone(),
    }
}

fn bound() -> RequestBinding {
    RequestBinding::new("token:ada", &call(&json!({"env": "prod"})))
}

fn seal(states: &RequestStates) -> String {
    states.seal(bound(), vec!["ok".into()], journal()).unwrap()
}

#[test]
fn a_state_survives_sealing() {
    let states = states(None, &clock());
    let state = seal(&states);
    let opened = states.unseal(&state, bound()).unwrap();
    assert_eq!(
        (opened.question_keys, opened.journal),
        (vec!["ok".to_owned()], journal())
    );
    assert!(state.len() < 400, "{}", state.len());
    assert_ne!(seal(&states), state, "no two states are equal");
    // No plaintext is visible.
    let bytes = BASE64.decode(&state).unwrap();
    assert!(!bytes.windows(3).any(|part| part == b"Ada"));
}

#[test]
fn every_attack_on_the_text_is_refused_as_tampering() {
    let states = states(None, &clock());
    let state = seal(&states);
    let bytes = BASE64.decode(&state).unwrap();
    let changed = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = bytes.clone();
        change(&mut bytes);
        BASE64.encode(bytes)
    };
    let last = bytes.len() - 1;
    let mut attacks: Vec<(String, String)> = Vec::new();
    // Version, nonce, the claim's id, expiry, binding, keys, journal, and the tag.
    for at in [
        0,
        1,
        6,
        12,
        13,
        20,
        28,
        29,
        32,
        40,
        64,
        80,
        bytes.len() / 2,
        last - 16,
        last - 15,
        last - 8,
        last,
    ] {
        attacks.push((
            format!("bit of byte {at}"),
            changed(&|bytes| bytes[at] ^= 0x10),
        ));
    }
    for kept in [0, 1, 12, 13, 14, 28, 29, 30, last / 2, last - 16, last] {
        attacks.push((
            format!("cut to {kept} bytes"),
            changed(&|bytes| bytes.truncate(kept)),
        ));
    }
    attacks.push(("extended by a byte".into(), changed(&|bytes| bytes.push(0))));
    attacks.push((
        "extended by itself".into(),
        changed(&|bytes| bytes.extend_from_within(..)),
    ));
    attacks.push((
        "a byte before it".into(),
        changed(&|bytes| bytes.insert(0, 1)),
    ));
    attacks.push((
        "its parts exchanged".into(),
        changed(&|bytes| bytes.rotate_left(20)),
    ));
    attacks.push(("zeros".into(), BASE64.encode(vec![0; bytes.len()])));
    attacks.push(("extended text".into(), format!("{state}A")));
    attacks.push(("padded text".into(), format!("{state}==")));
    attacks.push(("another alphabet".into(), format!("{}+/", &state[2..])));
    attacks.push(("spaces".into(), format!(" {state}\n")));
    attacks.push(("empty".into(), String::new()));
    attacks.push(("no base64".into(), "{\"answers\":{}}".into()));
    attacks.push(("no ASCII".into(), "é".repeat(100)));
    attacks.push(("huge".into(), "A".repeat(MAX_STATE_BYTES + 1)));
    attacks.push((
        "huge and almost short enough".into(),
        "A".repeat(MAX_STATE_BYTES),
    ));
    let other = RequestStates::in_memory(&[8; 32]).unwrap();
    attacks.push(("another key".into(), seal(&other)));
    let first = BASE64.decode(seal(&states)).unwrap();
    let second = BASE64.decode(seal(&states)).unwrap();
    attacks.push((
        "two states mixed".into(),
        BASE64.encode([&first[..40], &second[40..]].concat()),
    ));
    assert!(attacks.len() >= 40, "{}", attacks.len());
    for (what, attack) in attacks {
        assert_eq!(
            states.unseal(&attack, bound()).unwrap_err(),
            InvalidState::Tampered,
            "{what}"
        );
    }
    states.unseal(&state, bound()).unwrap();
}

proptest! {
    #[test]
    fn a_flipped_bit_is_tampering(at in any::<prop::sample::Index>(), bit in 0..8_u32) {
        let states = states(None, &clock());
        let mut bytes = BASE64.decode(seal(&states)).unwrap();
        let at = at.index(bytes.len());
        bytes[at] ^= 1 << bit;
        prop_assert_eq!(states.unseal(&BASE64.encode(bytes), bound()).unwrap_err(), InvalidState::Tampered);
    }

    #[test]
    fn arbitrary_text_is_not_a_state(text in ".{0,300}") {
        prop_assert_eq!(states(None, &clock()).unseal(&text, bound()).unwrap_err(), InvalidState::Tampered);
    }

    #[test]
    fn any_journal_survives_sealing(
        answers in prop::collection::btree_map(".{0,20}", ".{0,60}", 0..8),
        effects in prop::collection::vec((".{0,40}", prop::collection::vec(any::<u8>(), 0..200)), 0..8),
        rounds: u32, began: u64, until: u64, edition in prop::option::of(any::<[u8; 32]>()),
        approval in prop_oneof![Just(ApprovalState::Unasked), any::<u32>().prop_map(ApprovalState::Asked), Just(ApprovalState::Given)],
        asked in prop::collection::vec("[a-z]{1,64}", 0..16),
    ) {
        let effects = effects.into_iter().map(|(what, result)| RecordedEffect { what, result }).collect();
        let journal = CallJournal { answers, effects, rounds, began, until, edition: edition.map(Digest::new), approval, ..CallJournal::default() };
        let states = states(None, &clock());
        let state = states.seal(bound(), asked.clone(), journal.clone()).unwrap();
        let opened = states.unseal(&state, bound()).unwrap();
        prop_assert_eq!((opened.question_keys, opened.journal), (asked, journal));
    }
}

#[test]
fn a_state_of_another_request_is_foreign() {
    let states = states(None, &clock());
    let state = seal(&states);
    let arguments = json!({"env": "prod"});
    let others = [
        RequestBinding::new("token:bob", &call(&arguments)),
        RequestBinding::new("token:ada ", &call(&arguments)),
        RequestBinding::new("stdio", &call(&arguments)),
        RequestBinding::new("token:ada", &call(&json!({"env": "test"}))),
        RequestBinding::new("token:ada", &call(&json!({"env": "prod", "force": true}))),
        RequestBinding::new("token:ada", &call(&json!({}))),
        RequestBinding::new(
            "token:ada",
            &CallRequest::Tool {
                name: "destroy".into(),
                arguments: arguments.as_object().unwrap().clone(),
            },
        ),
        RequestBinding::new(
            "token:ada",
            &CallRequest::Prompt {
                name: "deploy".into(),
                arguments: BTreeMap::from([("env".into(), "prod".into())]),
            },
        ),
        RequestBinding::new(
            "token:ada",
            &CallRequest::Resource {
                uri: "deploy".into(),
            },
        ),
    ];
    for other in others {
        assert_eq!(
            states.unseal(&state, other).unwrap_err(),
            InvalidState::Foreign
        );
    }
}

#[test]
fn a_state_expires_after_ten_minutes() {
    let clock = clock();
    let states = states(None, &clock);
    let state = seal(&states);
    clock.fetch_add(10 * MINUTE - 1, Ordering::Relaxed);
    states.unseal(&state, bound()).unwrap();
    clock.fetch_add(1, Ordering::Relaxed);
    assert_eq!(
        states.unseal(&state, bound()).unwrap_err(),
        InvalidState::Expired
    );
}

async fn enter(states: &RequestStates, state: &str) -> Result<EntryTicket, TicketRefused> {
    let ticket = states.unseal(state, bound()).unwrap().ticket;
    states.redeem(ticket, "token:ada").await.map(|()| ticket)
}

#[tokio::test]
async fn a_state_is_valid_for_one_entry() {
    let dir = tempfile::tempdir().unwrap();
    for folder in [None, Some(dir.path())] {
        let states = states(folder, &clock());
        let first = seal(&states);
        let second = seal(&states);
        enter(&states, &first).await.unwrap();
        assert!(matches!(
            enter(&states, &first).await,
            Err(TicketRefused::Used)
        ));
        let ticket = enter(&states, &second).await.unwrap();
        states.restore(ticket).await;
        enter(&states, &second).await.unwrap();
        assert!(matches!(
            enter(&states, &second).await,
            Err(TicketRefused::Used)
        ));
    }
}

#[tokio::test]
async fn only_one_of_many_concurrent_entries_succeeds() {
    let dir = tempfile::tempdir().unwrap();
    let clock = clock();
    let servers: Vec<_> = (0..4).map(|_| states(Some(dir.path()), &clock)).collect();
    let state = seal(&servers[0]);
    let tries = servers
        .iter()
        .cycle()
        .take(40)
        .map(|server| enter(server, &state));
    let entered = futures_util::future::join_all(tries).await;
    assert_eq!(entered.iter().filter(|entered| entered.is_ok()).count(), 1);
    assert!(
        entered
            .iter()
            .all(|entered| matches!(entered, Ok(_) | Err(TicketRefused::Used)))
    );
}

#[tokio::test]
async fn used_and_unused_states_survive_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let clock = clock();
    let first = states(Some(dir.path()), &clock);
    let [used, given_back, open] = [seal(&first), seal(&first), seal(&first)];
    enter(&first, &used).await.unwrap();
    let ticket = enter(&first, &given_back).await.unwrap();
    first.restore(ticket).await;
    drop(first);
    let second = states(Some(dir.path()), &clock);
    assert!(matches!(
        enter(&second, &used).await,
        Err(TicketRefused::Used)
    ));
    enter(&second, &given_back).await.unwrap();
    enter(&second, &open).await.unwrap();
}

fn record(folder: &Path) -> Vec<std::path::PathBuf> {
    let paths = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    paths
        .filter(|path| {
            path.file_name()
                .unwrap()
                .to_str()
                .unwrap()
                .starts_with("used-")
        })
        .collect()
}

#[tokio::test]
async fn a_torn_record_does_not_lose_later_records() {
    let dir = tempfile::tempdir().unwrap();
    let clock = clock();
    let first = states(Some(dir.path()), &clock);
    let [one, two] = [seal(&first), seal(&first)];
    enter(&first, &one).await.unwrap();
    let [file] = &record(dir.path())[..] else {
        panic!()
    };
    let whole = fs::read(file).unwrap();
    fs::write(file, [&whole[..], &whole[..5]].concat()).unwrap();
    let second = states(Some(dir.path()), &clock);
    enter(&second, &two).await.unwrap();
    let third = states(Some(dir.path()), &clock);
    for state in [&one, &two] {
        assert!(matches!(
            enter(&third, state).await,
            Err(TicketRefused::Used)
        ));
    }
    assert_eq!(fs::metadata(file).unwrap().len() % 17, 0);
}

#[tokio::test]
async fn expired_records_are_removed_from_memory_and_disk() {
    let dir = tempfile::tempdir().unwrap();
    let clock = clock();
    let states = states(Some(dir.path()), &clock);
    for _ in 0..20 {
        enter(&states, &seal(&states)).await.unwrap();
        clock.fetch_add(5 * MINUTE, Ordering::Relaxed);
    }
    assert!(record(dir.path()).len() <= 3, "{:?}", record(dir.path()));
    // A server that starts removes the files that others left.
    clock.fetch_add(60 * MINUTE, Ordering::Relaxed);
    let next = self::states(Some(dir.path()), &clock);
    enter(&next, &seal(&next)).await.unwrap();
    assert_eq!(record(dir.path()).len(), 1);
}

#[tokio::test]
async fn one_caller_cannot_use_the_capacity_of_others() {
    let states = states(None, &clock());
    let expires = 1_005 * MINUTE;
    let ticket = |n: u32| EntryTicket {
        id: u128::from(n).to_le_bytes(),
        expires,
        epoch: 0,
    };
    for n in 0..16_384 {
        states.redeem(ticket(n), "token:ada").await.unwrap();
    }
    assert!(matches!(
        states.redeem(ticket(20_000), "token:ada").await,
        Err(TicketRefused::Full)
    ));
    states.redeem(ticket(20_000), "token:bob").await.unwrap();
    for n in 0..60_000 {
        drop(
            states
                .redeem(ticket(100_000 + n), &format!("token:{n}"))
                .await,
        );
    }
    assert!(matches!(
        states.redeem(ticket(200_000), "token:new").await,
        Err(TicketRefused::Full)
    ));
    assert!(matches!(
        states.redeem(ticket(20_000), "token:bob").await,
        Err(TicketRefused::Used)
    ));
}

#[tokio::test]
async fn an_entry_that_cannot_be_recorded_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let states = states(Some(dir.path()), &clock());
    let state = seal(&states);
    // A directory has the name of the file.
    fs::create_dir(dir.path().join("used-101")).unwrap();
    assert!(matches!(
        enter(&states, &state).await,
        Err(TicketRefused::Unwritten(_))
    ));
}

fn remove_record(folder: &Path) {
    for file in record(folder) {
        fs::remove_file(file).unwrap();
    }
}

fn remove_tally(folder: &Path) {
    fs::remove_file(folder.join("record")).unwrap();
}

/// Changes the id of a record.
fn change_record(folder: &Path) {
    for file in record(folder) {
        let mut bytes = fs::read(&file).unwrap();
        bytes[1] ^= 1;
        fs::write(&file, bytes).unwrap();
    }
}

/// What can happen to the record.
const LOSSES: [fn(&Path); 6] = [
    remove_record,
    remove_tally,
    |folder| {
        for file in record(folder) {
            fs::write(file, "").unwrap();
        }
    },
    // One record is missing.
    |folder| {
        for file in record(folder) {
            let bytes = fs::read(&file).unwrap();
            fs::write(&file, &bytes[..bytes.len() - 17]).unwrap();
        }
    },
    |folder| fs::write(folder.join("record"), "").unwrap(),
    |folder| {
        remove_record(folder);
        remove_tally(folder);
    },
];

#[tokio::test]
async fn a_record_lost_before_a_restart_invalidates_earlier_states() {
    for (which, lose) in LOSSES
        .into_iter()
        .chain([change_record as fn(&Path)])
        .enumerate()
    {
        for key in [None, Some([9; KEY_BYTES])] {
            let dir = tempfile::tempdir().unwrap();
            let clock = clock();
            let first = stored(dir.path(), key, &clock);
            let [used, other] = [seal(&first), seal(&first)];
            let unasked = CallJournal {
                approval: ApprovalState::Unasked,
                ..journal()
            };
            let open = first.seal(bound(), Vec::new(), unasked).unwrap();
            for state in [&used, &other] {
                enter(&first, state).await.unwrap();
            }
            drop(first);
            lose(dir.path());
            let second = stored(dir.path(), key, &clock);
            // With its own key, the server cannot read them. With a shared key, approvals were
            // requested by the server that had the record, and the other states are too old.
            let expected = if key.is_none() {
                InvalidState::Tampered
            } else {
                InvalidState::OtherServer
            };
            for state in [&used, &other] {
                assert_eq!(
                    second.unseal(state, bound()).unwrap_err(),
                    expected,
                    "{which}"
                );
            }
            let expected = if key.is_none() {
                InvalidState::Tampered
            } else {
                InvalidState::Unrecorded
            };
            assert_eq!(
                second.unseal(&open, bound()).unwrap_err(),
                expected,
                "{which}"
            );
            // A further restart does not change this, and new states are valid once as before.
            clock.fetch_add(1, Ordering::Relaxed);
            let state = seal(&second);
            enter(&second, &state).await.unwrap();
            drop(second);
            let third = stored(dir.path(), key, &clock);
            assert!(
                matches!(enter(&third, &state).await, Err(TicketRefused::Used)),
                "{which}"
            );
            assert_eq!(
                third.unseal(&open, bound()).unwrap_err(),
                expected,
                "{which}"
            );
        }
    }
}

#[tokio::test]
async fn a_record_lost_while_servers_run_invalidates_their_states() {
    for lose in LOSSES {
        for key in [None, Some([9; KEY_BYTES])] {
            let dir = tempfile::tempdir().unwrap();
            let clock = clock();
            let [one, two] = [(); 2].map(|()| stored(dir.path(), key, &clock));
            let [used, open, held] = [seal(&one), seal(&one), seal(&two)];
            enter(&one, &used).await.unwrap();
            let ticket = two.unseal(&open, bound()).unwrap().ticket;
            lose(dir.path());
            assert!(matches!(
                two.redeem(ticket, "token:ada").await,
                Err(TicketRefused::Lost)
            ));
            // A ticket of the lost record stays refused.
            assert!(matches!(
                two.redeem(ticket, "token:ada").await,
                Err(TicketRefused::Lost)
            ));
            assert!(two.unseal(&used, bound()).is_err() && two.unseal(&open, bound()).is_err());
            // The other server detects the loss at the next entry.
            for state in [&used, &held] {
                let Ok(opened) = one.unseal(state, bound()) else {
                    continue;
                };
                assert!(matches!(
                    one.redeem(opened.ticket, "token:ada").await,
                    Err(TicketRefused::Lost)
                ));
            }
            // Both servers share one record again.
            clock.fetch_add(1, Ordering::Relaxed);
            let state = seal(&one);
            enter(&two, &state).await.unwrap();
            assert!(matches!(
                enter(&one, &state).await,
                Err(TicketRefused::Used)
            ));
        }
    }
}

#[tokio::test]
async fn a_crash_before_the_record_is_counted_loses_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let clock = clock();
    let first = states(Some(dir.path()), &clock);
    let [one, two, open] = [seal(&first), seal(&first), seal(&first)];
    enter(&first, &one).await.unwrap();
    let tally = fs::read(dir.path().join("record")).unwrap();
    enter(&first, &two).await.unwrap();
    drop(first);
    fs::write(dir.path().join("record"), tally).unwrap();
    let second = states(Some(dir.path()), &clock);
    for state in [&one, &two] {
        assert!(matches!(
            enter(&second, state).await,
            Err(TicketRefused::Used)
        ));
    }
    enter(&second, &open).await.unwrap();
}

#[tokio::test]
async fn no_state_is_accepted_if_the_record_cannot_be_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let clock = clock();
    let states = states(Some(dir.path()), &clock);
    let [used, open] = [seal(&states), seal(&states)];
    enter(&states, &used).await.unwrap();
    remove_record(dir.path());
    // A directory has the name of the key.
    fs::remove_file(dir.path().join("key")).unwrap();
    fs::create_dir(dir.path().join("key")).unwrap();
    for _ in 0..2 {
        assert!(matches!(
            enter(&states, &open).await,
            Err(TicketRefused::Unwritten(_))
        ));
    }
}

#[test]
fn a_key_can_be_shared() {
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let [here, there] = folders.map(|dir| {
        RequestStates::open(
            PrivateFolder::open(dir.path(), "tests").unwrap(),
            Some([9; 32]),
        )
        .unwrap()
    });
    let unasked = CallJournal {
        approval: ApprovalState::Unasked,
        ..journal()
    };
    there
        .unseal(&here.seal(bound(), Vec::new(), unasked).unwrap(), bound())
        .unwrap();
    assert_eq!(
        there.unseal(&seal(&here), bound()).err(),
        Some(InvalidState::OtherServer),
        "it asks for an approval"
    );
}

#[test]
fn a_state_that_would_be_too_long_is_not_issued() {
    let effects = vec![RecordedEffect {
        what: String::new(),
        result: vec![7; 2 << 20],
    }];
    let error = states(None, &clock())
        .seal(
            bound(),
            vec![],
            CallJournal {
                effects,
                ..CallJournal::default()
            },
        )
        .unwrap_err();
    assert!(error.contains("and the maximum is 2097152"), "{error}");
}

#[test]
fn an_approval_is_valid_only_on_the_server_that_requested_it() {
    let [one, two] = [(); 2].map(|()| RequestStates::in_memory(&[7; 32]).unwrap());
    for approval in [
        ApprovalState::Asked(1),
        ApprovalState::Given,
        ApprovalState::Unasked,
    ] {
        let sealed = one
            .seal(
                bound(),
                Vec::new(),
                CallJournal {
                    approval,
                    ..journal()
                },
            )
            .unwrap();
        assert!(one.unseal(&sealed, bound()).is_ok());
        let there = two.unseal(&sealed, bound());
        let expected = if approval == ApprovalState::Unasked {
            None
        } else {
            Some(InvalidState::OtherServer)
        };
        assert_eq!(there.err(), expected, "{approval:?}");
    }
}
