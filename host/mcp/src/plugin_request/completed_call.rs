//! Fourth stage: builds the response of a call from its outcome.

use std::time::Duration;

use serde_json::{Map, Value};
use toolbay_model::{
    CallError, CallFailure, CallReply, CallResult, CallUsage, Question, QuestionRound,
};

use crate::host::interface::QueuePlace;
use crate::host::request_state::RequestBinding;
use crate::plugin_request::call_outcome::{CallOutcome, EndedCall};
use crate::plugin_request::call_state::CallState;
use crate::protocol::jsonrpc::Error;
use crate::response::call_response;

/// A completed call and its place in the client's queue.
pub(crate) struct CompletedCall {
    /// `None` if the call was cancelled.
    pub(super) response: Option<CallResponse>,
    pub(super) place: Option<Box<dyn QueuePlace>>,
}

/// The result of a call, as sent to the client.
pub(crate) struct CallResponse {
    /// The result, without the members that all results of the revision have.
    pub(super) result: Result<Map<String, Value>, Error>,
    pub(super) retry_after: Option<Duration>,
}

impl CompletedCall {
    /// Builds the response of an ended call.
    pub(super) fn new(state: &CallState<'_>, ended: EndedCall) -> Self {
        let EndedCall { outcome, place } = ended;
        let response = match outcome {
            CallOutcome::Cancelled => None,
            CallOutcome::Panicked(panic) => Some(CallResponse::from_error(
                call_response::internal_error(&panic),
            )),
            CallOutcome::Answered(CallResult {
                result: Ok(CallReply::Questions(round)),
                usage,
            }) => Some(CallResponse::from_questions(state, round, usage)),
            CallOutcome::Answered(answer) => Some(CallResponse {
                retry_after: match &answer.result {
                    Err(CallFailure::Rejected(rejection)) => rejection.retry_after,
                    _ => None,
                },
                result: call_response::to_response(
                    answer,
                    state.target,
                    state.rules.revision,
                    state.session.server.options().includes_usage,
                ),
            }),
        };
        Self { response, place }
    }

    /// Creates the end of a call that its client has cancelled.
    pub(super) fn cancelled() -> Self {
        Self {
            response: None,
            place: None,
        }
    }

    /// Returns the code of the error, if the response is an error.
    pub(super) fn error_code(&self) -> Option<i32> {
        let result = &self.response.as_ref()?.result;
        result.as_ref().err().map(|error| error.code)
    }
}

impl CallResponse {
    /// Creates the response of a call that ended with this error.
    pub(super) fn from_error(error: Error) -> Self {
        Self {
            result: Err(error),
            retry_after: None,
        }
    }

    /// Creates the response of a call that asks a client without a session.
    fn from_questions(
        state: &CallState<'_>,
        round: QuestionRound,
        usage: Option<CallUsage>,
    ) -> Self {
        let with_usage = state.session.server.options().includes_usage;
        let revision = state.rules.revision;
        let result = match seal_state(state, round) {
            Ok(SealedQuestions { questions, state }) => call_response::input_required_result(
                &questions,
                state,
                usage.filter(|_| with_usage),
                revision,
            ),
            Err(failure) => call_response::to_response(
                CallResult {
                    result: Err(failure),
                    usage,
                },
                state.target,
                revision,
                with_usage,
            ),
        };
        Self {
            result,
            retry_after: None,
        }
    }
}

/// Questions for a client without a session.
struct SealedQuestions {
    questions: Vec<Question>,
    /// The sealed state that the client sends back with the answers.
    state: String,
}

fn seal_state(state: &CallState<'_>, round: QuestionRound) -> Result<SealedQuestions, CallFailure> {
    let QuestionRound { questions, journal } = round;
    let (Some(retained), false) = (&state.retained, questions.is_empty()) else {
        return Err(state.unanswerable_failure(&questions));
    };
    state.check_capabilities(&questions)?;
    let session = state.session;
    // The reservation ends with this function.
    let reparsed = retained.parse_again(session)?;
    let binding = RequestBinding::new(&session.opener.name, &reparsed.request);
    let asked = questions
        .iter()
        .map(|question| question.key.clone())
        .collect();
    let sealed = session
        .server
        .request_states()
        .seal(binding, asked, journal)
        .map_err(|what| CallFailure::Call(CallError::Internal(what)))?;
    Ok(SealedQuestions {
        questions,
        state: sealed,
    })
}
