//! Tests of `effects`.

use bytesize::ByteSize;

use super::*;

fn effects(past: &[RecordedEffect]) -> SideEffects {
    let limits = Limits {
        journal: ByteSize::b(100),
        ..Limits::DEFAULT
    };
    let past = CallJournal {
        effects: past.to_vec(),
        ..CallJournal::default()
    };
    SideEffects::new(
        true,
        &past.into(),
        &limits,
        &MemoryBudget::new(ByteSize::kib(1)),
        ReplayTape::default(),
    )
}

fn perform(effects: &SideEffects, description: &str, result: &[u8]) -> Option<Vec<u8>> {
    match effects
        .begin(OperationKind::State, || description.to_owned())
        .unwrap()
    {
        EffectStart::Replay(result) => Some(result),
        EffectStart::Execute(number) => {
            effects.end(number, result.to_vec());
            None
        }
    }
}

#[test]
fn completed_operations_are_not_executed_again() {
    let first = effects(&[]);
    assert_eq!(perform(&first, "a", b"1"), None);
    assert_eq!(perform(&first, "b", b"2"), None);
    let second = effects(&first.to_journal().unwrap());
    assert_eq!(perform(&second, "a", b"x").as_deref(), Some(&b"1"[..]));
    assert_eq!(perform(&second, "b", b"x").as_deref(), Some(&b"2"[..]));
    assert_eq!(perform(&second, "c", b"3"), None);
    assert_eq!(second.to_journal().unwrap().len(), 3);
}

#[test]
fn a_different_operation_than_before_is_reported() {
    let first = effects(&[]);
    perform(&first, "a", b"1");
    let second = effects(&first.to_journal().unwrap());
    let diverged = second
        .begin(OperationKind::State, || "b".to_owned())
        .err()
        .unwrap();
    assert!(
        diverged.to_string().contains("b instead of a"),
        "{diverged}"
    );
}

#[test]
fn unfinished_or_too_large_results_block_questions() {
    let effects = |()| self::effects(&[]);
    let unfinished = effects(());
    unfinished
        .begin(OperationKind::Http, || "POST /".to_owned())
        .unwrap();
    assert!(
        unfinished
            .to_journal()
            .unwrap_err()
            .contains("POST / was started")
    );
    let large = effects(());
    perform(&large, "a", &[0; 100]);
    assert!(large.to_journal().unwrap_err().contains("limits.journal"));
    assert_eq!(large.remaining_bytes(), 0);
    let file = effects(());
    file.block_questions(AskBlocker::FileChange);
    file.block_questions(AskBlocker::TcpConnection);
    assert!(file.to_journal().unwrap_err().contains("changed files"));
}

#[test]
fn a_plugin_that_cannot_ask_has_no_journal() {
    let effects = SideEffects::new(
        false,
        &Arc::default(),
        &Limits::DEFAULT,
        &MemoryBudget::new(ByteSize::b(0)),
        ReplayTape::default(),
    );
    assert_eq!(perform(&effects, "a", &[0; 1000]), None);
    assert_eq!(
        (
            effects.remaining_bytes(),
            effects.to_journal().unwrap().len()
        ),
        (0, 0)
    );
}
