//! Third stage: drives a call. It enters the plugin, asks the client what the plugin asks, and
//! enters the plugin again with the answers, until the call has ended.

use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;

use futures_util::FutureExt as _;
use tokio_util::sync::CancellationToken;
use toolbay_model::{
    CallError, CallFailure, CallJournal, CallObserver, CallRejection, CallReply, CallResult,
    QuestionRound, RejectionReason,
};

use crate::exchange::in_flight::RegisteredRequest;
use crate::host::interface::{ClientCall, QueuePlace};
use crate::plugin_request::call_entry::{self, CallEntry};
use crate::plugin_request::call_outcome::{CallOutcome, EndedCall};
use crate::plugin_request::call_state::{CallState, QuestionChannel};
use crate::plugin_request::completed_call::{CallResponse, CompletedCall};
use crate::plugin_request::input_responses::RetryInput;
use crate::plugin_request::pending_call::{CallPlace, PendingCall};
use crate::plugin_request::{question_round, restored_journal};
use crate::session::client_session::Session;
use crate::tasks::TaskPhase;

/// Returns the registration of a call, and a future that drives it to the response for the client.
pub(super) fn drive<'a>(
    pending: Box<PendingCall>,
    session: &'a Session,
    channel: QuestionChannel<'a>,
    observer: Arc<dyn CallObserver>,
    cancelled: &'a CancellationToken,
) -> (
    RegisteredRequest,
    impl Future<Output = CompletedCall> + Send + 'a,
) {
    // Destructured outside the future, which would otherwise keep the allocation until the call
    // ends.
    let PendingCall {
        request,
        rules,
        call,
        place,
        retained,
        retry,
        revoked,
        ..
    } = *pending;
    let mut state = CallState {
        session,
        channel,
        rules,
        cancelled,
        observer,
        retained,
        journal_reservations: Vec::new(),
        was_admitted: false,
        target: call.request.kind(),
        permitted: call.is_permitted,
        arguments: call.arguments,
        trace: call.trace.clone().map(Box::new),
        wire: call.metadata.clone(),
    };
    // A call whose caller's authorization is withdrawn must not enter a plugin any more, whether it
    // waits in a queue, for an approval or for an answer.
    let driving = async move {
        let mut driving = pin!(drive_to_response(&mut state, call, place, retry));
        tokio::select! {
            biased;
            () = revoked.cancelled() => cancelled.cancel(),
            done = driving.as_mut() => return done,
        }
        driving.await
    };
    (request, driving)
}

/// Drives the call to the response for the client. With `retry`, the call continues from the
/// journal of an earlier run.
async fn drive_to_response(
    state: &mut CallState<'_>,
    call: Box<ClientCall>,
    place: CallPlace,
    retry: Option<Box<RetryInput>>,
) -> CompletedCall {
    let place = match place {
        CallPlace::Taken(place) => place,
        CallPlace::Rejected(rejection) => {
            let ended = EndedCall {
                outcome: CallOutcome::failed(CallFailure::Rejected(*rejection)),
                place: None,
            };
            return CompletedCall::new(state, ended);
        }
    };
    let entry = CallEntry { call, place };
    if let Some(retry) = retry {
        // Boxed with its state, because few calls resume.
        return Box::pin(resume(state, entry, retry)).await;
    }
    let ended = run_to_end(state, entry).await;
    CompletedCall::new(state, ended)
}

/// Drives a call that has the journal of an earlier run.
async fn resume(
    state: &mut CallState<'_>,
    mut entry: CallEntry,
    retry: Box<RetryInput>,
) -> CompletedCall {
    let ticket = match restored_journal::restore(state.session, &mut entry.call, retry).await {
        Ok(ticket) => ticket,
        Err(error) => {
            return CompletedCall {
                response: Some(CallResponse::from_error(error)),
                place: Some(entry.place),
            };
        }
    };
    let ended = run_to_end(state, entry).await;
    if let Some(ticket) = ticket
        && ended.outcome.is_rejection()
        && !state.was_admitted
    {
        // The plugin was never entered, so the client can send the same answers again.
        state.session.server.request_states().restore(ticket).await;
    }
    CompletedCall::new(state, ended)
}

/// Enters the plugin, and enters it again with the answers each time it has asked the client of a
/// session a question.
async fn run_to_end(state: &mut CallState<'_>, entry: CallEntry) -> EndedCall {
    let CallEntry {
        mut call,
        mut place,
    } = entry;
    // Only a task waits for capacity before it has asked anything. It continues with its initial
    // journal.
    let resumed =
        matches!(state.channel, QuestionChannel::Task(_)).then(|| Arc::clone(&call.journal));
    let mut answered: Option<Arc<CallJournal>> = None;
    loop {
        // Boxed, and dropped with its state while a person thinks.
        let outcome = Box::pin(enter_plugin(state, call, &mut *place)).await;
        state.was_admitted |= !outcome.is_rejection();
        let pause = match next_step(state, outcome, answered.as_deref()) {
            NextStep::Pause(pause) => pause,
            NextStep::End(outcome) => {
                return EndedCall {
                    outcome,
                    place: Some(place),
                };
            }
        };
        drop(place);
        let journal = match pause {
            CallPause::Ask(round) => Box::pin(question_round::ask(state, round)).await,
            CallPause::Wait(rejection) => {
                let journal = answered
                    .as_ref()
                    .or(resumed.as_ref())
                    .cloned()
                    .unwrap_or_default();
                match state.reserve_journal(&journal) {
                    Ok(()) => Box::pin(call_entry::wait_to_requeue(state, rejection))
                        .await
                        .map(|()| journal),
                    Err(ended) => Err(ended),
                }
            }
        };
        let again = match journal {
            Ok(journal) => Box::pin(CallEntry::requeue(state, answered.insert(journal))).await,
            Err(ended) => Err(ended),
        };
        CallEntry { call, place } = match again {
            Ok(again) => again,
            Err(ended) => {
                return EndedCall {
                    outcome: ended.into(),
                    place: None,
                };
            }
        };
    }
}

/// Runs the call in the plugin as soon as it is admitted.
async fn enter_plugin(
    state: &CallState<'_>,
    call: Box<ClientCall>,
    place: &mut dyn QueuePlace,
) -> CallOutcome {
    let calling = place.call(*call, Arc::clone(&state.observer));
    tokio::select! {
        biased;
        () = state.cancelled.cancelled() => CallOutcome::Cancelled,
        () = state.session.shutdown.stopped.cancelled() => CallOutcome::failed(CallFailure::Call(CallError::Cancelled)),
        // A panic in a call fails only that call.
        answer = AssertUnwindSafe(calling).catch_unwind() => {
            answer.map_or_else(|panic| CallOutcome::panicked(&*panic), CallOutcome::Answered)
        }
    }
}

/// The next step of a call after an entry.
enum NextStep {
    /// The call has ended.
    End(CallOutcome),
    /// The call enters its plugin again, after a pause.
    Pause(CallPause),
}

/// The reason why a call enters its plugin again.
enum CallPause {
    /// The client is asked.
    Ask(Box<QuestionRound>),
    /// The call waits for capacity.
    Wait(CallRejection),
}

fn next_step(
    state: &CallState<'_>,
    outcome: CallOutcome,
    answered: Option<&CallJournal>,
) -> NextStep {
    match outcome {
        CallOutcome::Answered(CallResult {
            result: Ok(CallReply::Questions(round)),
            ..
        }) if waits_for_answers(state, &round) => NextStep::Pause(CallPause::Ask(Box::new(round))),
        CallOutcome::Answered(CallResult {
            result: Err(CallFailure::Rejected(rejection)),
            ..
        }) if should_requeue(state, rejection, answered) => {
            NextStep::Pause(CallPause::Wait(rejection))
        }
        outcome => NextStep::End(outcome),
    }
}

/// Returns whether the call waits for the answers to its questions. Otherwise its response contains
/// the questions. The questions for an operator are never sent to a client.
fn waits_for_answers(state: &CallState<'_>, round: &QuestionRound) -> bool {
    if round.journal.is_for_operator() {
        return true;
    }
    match state.channel {
        QuestionChannel::Stream(_) => !state.rules.revision.features().input_requests,
        QuestionChannel::Task(live) => live.decide_phase(TaskPhase::Request) == TaskPhase::Task,
    }
}

/// Returns whether a rejected call waits and tries again. Only a task, and a call that already has
/// answers, do that.
fn should_requeue(
    state: &CallState<'_>,
    rejection: CallRejection,
    answered: Option<&CallJournal>,
) -> bool {
    match (state.channel, answered) {
        (_, Some(journal)) => call_entry::is_in_time(rejection, journal),
        // A task can wait until its time to live ends.
        (QuestionChannel::Task(live), None) => {
            matches!(rejection.reason, RejectionReason::Busy { .. })
                && live.phase() == TaskPhase::Task
        }
        (QuestionChannel::Stream(_), None) => false,
    }
}
