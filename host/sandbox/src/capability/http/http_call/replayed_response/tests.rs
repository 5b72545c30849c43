use http_body_util::Full;
use toolbay_model::{CallJournal, Limits};

use toolbay_outgoing::SendError;

use super::super::response_observer::ObservedBody;
use super::super::response_recorder::ResponseRecorder;
use super::*;
use crate::capability::effects::{EffectStart, SideEffects};
use crate::capability::memory_budget::MemoryBudget;
use crate::context::replay_log::{OperationKind, ReplayTape};

fn effects(past: &[toolbay_model::RecordedEffect]) -> SideEffects {
    let past = CallJournal {
        effects: past.to_vec(),
        ..CallJournal::default()
    };
    SideEffects::new(
        true,
        &past.into(),
        &Limits::DEFAULT,
        &MemoryBudget::new(Limits::DEFAULT.memory),
        ReplayTape::default(),
    )
}

/// Records a response of whose body the guest reads at most `frames` frames. Returns the
/// recorded effects.
async fn recorded(frames: usize) -> Vec<toolbay_model::RecordedEffect> {
    let effects = effects(&[]);
    let Ok(EffectStart::Execute(number)) =
        effects.begin(OperationKind::Http, || "POST /".to_owned())
    else {
        panic!()
    };
    let response = http::Response::builder()
        .status(201)
        .header("a", "b")
        .body(())
        .unwrap();
    let recorder = ResponseRecorder::start(effects.clone(), number, &response.into_parts().0);
    let body =
        Full::new(Bytes::from_static(b"made")).map_err(|never| -> SendError { match never {} });
    let mut body = ObservedBody::new(body, recorder, None, None, None);
    assert!(effects.to_journal().is_err(), "nothing of it was read yet");
    for _ in 0..frames {
        body.frame().await;
    }
    drop(body);
    effects.to_journal().unwrap()
}

async fn again(
    past: &[toolbay_model::RecordedEffect],
) -> (http::Response<()>, Result<Vec<u8>, Error>) {
    let Ok(EffectStart::Replay(response)) =
        effects(past).begin(OperationKind::Http, || "POST /".to_owned())
    else {
        panic!()
    };
    let request = Full::new(Bytes::from_static(b"x"))
        .map_err(|never| match never {})
        .boxed_unsync();
    let (response, taken_in) = Box::into_pin(replay_response(&response, request, None))
        .await
        .unwrap();
    Box::into_pin(taken_in).await.unwrap();
    let (parts, body) = response.into_parts();
    let body = body.collect().await.map(|body| body.to_bytes().to_vec());
    (http::Response::from_parts(parts, ()), body)
}

#[tokio::test]
async fn a_response_is_given_again_as_it_was() {
    let (head, body) = again(&recorded(1).await).await;
    assert_eq!(
        (head.status().as_u16(), head.headers()["a"].as_bytes()),
        (201, &b"b"[..])
    );
    assert_eq!(body.unwrap(), b"made");
}

#[tokio::test]
async fn what_the_guest_did_not_read_is_not_there_the_next_time() {
    let (head, body) = again(&recorded(0).await).await;
    assert_eq!(head.status().as_u16(), 201);
    assert!(matches!(body, Err(Error::HttpResponseIncomplete)));
}

#[test]
fn a_body_comes_in_the_same_pieces_whatever_their_list_says() {
    let cut = |pieces: &[u32]| -> Vec<usize> {
        split_body(Bytes::from_static(b"abcdef"), pieces)
            .into_iter()
            .map(|piece| piece.len())
            .collect()
    };
    assert_eq!(cut(&[1, 5]), [1, 5]);
    assert_eq!(cut(&[]), [6]);
    assert_eq!(cut(&[2]), [2, 4]);
    assert_eq!(cut(&[0, u32::MAX, 7]), [6]);
}
