//! A call that is ready to enter its plugin, and its return to the queue after a pause.

use std::sync::Arc;
use std::time::Duration;

use toolbay_model::{CallError, CallFailure, CallJournal, CallRejection};

use crate::host::interface::{ClientCall, QueuePlace};
use crate::lists::access_rights::CallerRights;
use crate::plugin_request::call_state::CallState;
use crate::plugin_request::elicitation::{self, NoAnswers};
use crate::plugin_request::retained_request::ReparsedRequest;

/// Minimum delay before a call that has its answers is queued again after a rejection.
const MIN_REQUEUE_DELAY: Duration = Duration::from_millis(10);

/// A call with its place in the client's queue.
pub(super) struct CallEntry {
    pub(super) call: Box<ClientCall>,
    pub(super) place: Box<dyn QueuePlace>,
}

impl CallEntry {
    /// Queues the call again with the answers.
    ///
    /// # Errors
    ///
    /// The call has ended.
    pub(super) async fn requeue(
        state: &CallState<'_>,
        journal: &Arc<CallJournal>,
    ) -> Result<Self, NoAnswers> {
        loop {
            match Self::try_requeue(state, journal) {
                Err(CallFailure::Rejected(rejection)) if is_in_time(rejection, journal) => {
                    wait_to_requeue(state, rejection).await?;
                }
                again => return again.map_err(NoAnswers::Failed),
            }
        }
    }

    fn try_requeue(state: &CallState<'_>, journal: &Arc<CallJournal>) -> Result<Self, CallFailure> {
        let session = state.session;
        let rules = &state.rules;
        let Some(retained) = &state.retained else {
            return Err(state.unanswerable_failure(&[]));
        };
        let ReparsedRequest {
            request,
            corrected,
            held,
        } = retained.parse_again(session)?;
        let place = session
            .opener
            .client
            .enqueue(request.target())
            .map_err(CallFailure::Rejected)?;
        let call = ClientCall {
            request,
            // An entered call had readable arguments.
            unreadable: None,
            corrected,
            is_permitted: state.permitted,
            // A call that was entered had a known target: nothing is suggested.
            rights: CallerRights::Only(Vec::new()),
            capabilities: rules.capabilities.clone(),
            answerable: rules.capabilities.answerable(rules.revision),
            journal: Arc::clone(journal),
            session: session.number_for(rules),
            trace: state.trace.as_deref().cloned(),
            metadata: state.wire.clone(),
            arguments: state.arguments,
            reservation: held,
        };
        Ok(Self {
            call: Box::new(call),
            place,
        })
    }
}

/// Waits until a call that has its answers can be queued again. This way, its answers are not lost
/// when other calls take the capacity.
///
/// # Errors
///
/// The call has ended.
pub(super) async fn wait_to_requeue(
    state: &CallState<'_>,
    rejection: CallRejection,
) -> Result<(), NoAnswers> {
    tokio::select! {
        biased;
        () = state.cancelled.cancelled() => Err(NoAnswers::Cancelled),
        () = state.session.shutdown.closing.cancelled() => Err(NoAnswers::Failed(CallFailure::Call(CallError::Cancelled))),
        () = tokio::time::sleep(rejection.retry_after.unwrap_or_default().max(MIN_REQUEUE_DELAY)) => Ok(()),
    }
}

/// Returns whether a rejected call can still run before the time for its answers ends.
pub(super) fn is_in_time(rejection: CallRejection, journal: &CallJournal) -> bool {
    rejection
        .retry_after
        .is_some_and(|wait| wait.max(MIN_REQUEUE_DELAY) < elicitation::remaining_time(journal))
}
