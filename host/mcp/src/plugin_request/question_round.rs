//! Questions of one entry, and the answers with which the call enters its plugin again. They come
//! from the client of a session, or from an operator who answers first.

use std::sync::Arc;

use toolbay_background::QuotaPortion;
use toolbay_model::{CallError, CallFailure, CallJournal, Question, QuestionRound};

use crate::host::operator_answers::{OperatorAnswer, OperatorReply, PendingQuestions};
use crate::plugin_request::call_state::{CallState, QuestionChannel};
use crate::plugin_request::elicitation::{self, NoAnswers, QuestionStream};

/// Who answered first.
enum AnswerSource {
    /// The client answered. Its answers are in the journal, with these reservations.
    Client(Vec<QuotaPortion>),
    /// An operator answered, and the question is withdrawn from the client.
    Operator(OperatorReply),
}

/// Asks the client of a session, and returns the journal with the answers. The journal's bytes
/// count against the caller until the call has ended.
///
/// # Errors
///
/// Returns the reason if there are no answers.
pub(super) async fn ask(
    state: &mut CallState<'_>,
    mut round: Box<QuestionRound>,
) -> Result<Arc<CallJournal>, NoAnswers> {
    let questions = std::mem::take(&mut round.questions);
    if round.journal.is_for_operator() {
        return ask_operator(state, &questions, round.journal).await;
    }
    if state.retained.is_none() || questions.is_empty() {
        return Err(NoAnswers::Failed(state.unanswerable_failure(&questions)));
    }
    state
        .check_capabilities(&questions)
        .map_err(NoAnswers::Failed)?;
    // Replaces the reservation for the journal of the previous round.
    state.journal_reservations.clear();
    state.reserve_journal(&round.journal)?;
    let mut operator_answer = offer_to_operators(state, &questions, &round.journal);
    // If the answer comes from an operator, the question is withdrawn from the client.
    let source = match state.channel {
        QuestionChannel::Stream(reply) => {
            let stream = QuestionStream {
                session: state.session,
                reply,
                revision: state.rules.revision,
                cancelled: state.cancelled,
                task: None,
            };
            tokio::select! {
                biased;
                answered = OperatorAnswer::wait_for_answer(&mut operator_answer) => AnswerSource::Operator(answered),
                held = elicitation::ask_client(&stream, questions, &mut round.journal) => AnswerSource::Client(held?),
            }
        }
        QuestionChannel::Task(live) => {
            let waiting = Box::pin(elicitation::wait_for_task_answers(
                state.session,
                live,
                questions,
                &mut round.journal,
            ));
            tokio::select! {
                biased;
                answered = OperatorAnswer::wait_for_answer(&mut operator_answer) => AnswerSource::Operator(answered),
                held = waiting => AnswerSource::Client(held?),
            }
        }
    };
    let answered = match source {
        AnswerSource::Client(held) => {
            state.journal_reservations.extend(held);
            // An operator who answered at the same moment was told that the answer counts, so it
            // takes precedence.
            operator_answer.and_then(OperatorAnswer::close)
        }
        AnswerSource::Operator(answered) => Some(answered),
    };
    if let Some(OperatorReply {
        key,
        answer,
        operator: by,
    }) = answered
    {
        round.journal.answers.insert(key, answer);
        round.journal.operator = Some(by);
    }
    Ok(Arc::new(round.journal))
}

/// Waits for the answer of an operator, without the client. Returns the journal without an answer
/// if no operator can answer, or if none answers in time.
///
/// # Errors
///
/// The call has ended.
async fn ask_operator(
    state: &mut CallState<'_>,
    questions: &[Question],
    mut journal: CallJournal,
) -> Result<Arc<CallJournal>, NoAnswers> {
    if state.retained.is_none() {
        // The grant has required an operator since the call arrived.
        return Err(NoAnswers::Failed(CallFailure::Outdated));
    }
    state.journal_reservations.clear();
    state.reserve_journal(&journal)?;
    let mut operator_answer = offer_to_operators(state, questions, &journal);
    if !operator_answer
        .as_ref()
        .is_some_and(OperatorAnswer::is_open)
    {
        operator_answer.and_then(OperatorAnswer::close);
        return Ok(Arc::new(journal));
    }
    let client_is_gone = async {
        match state.channel {
            QuestionChannel::Stream(reply) => reply.closed().await,
            QuestionChannel::Task(_) => std::future::pending().await,
        }
    };
    let answered = tokio::select! {
        biased;
        answered = OperatorAnswer::wait_for_answer(&mut operator_answer) => Some(answered),
        () = state.cancelled.cancelled() => return Err(NoAnswers::Cancelled),
        () = client_is_gone => return Err(NoAnswers::Cancelled),
        () = state.session.shutdown.closing.cancelled() => {
            return Err(NoAnswers::Failed(CallFailure::Call(CallError::Cancelled)));
        }
        () = tokio::time::sleep(elicitation::remaining_time(&journal)) => {
            operator_answer.and_then(OperatorAnswer::close)
        }
    };
    if let Some(OperatorReply {
        key,
        answer,
        operator,
    }) = answered
    {
        journal.answers.insert(key, answer);
        journal.operator = Some(operator);
    }
    Ok(Arc::new(journal))
}

/// Lets an operator answer too, if the host wants that.
fn offer_to_operators(
    state: &mut CallState<'_>,
    questions: &[Question],
    journal: &CallJournal,
) -> Option<OperatorAnswer> {
    let caller = &state.session.opener.name;
    let mut elsewhere = state
        .session
        .server
        .calls()
        .operator_answer(PendingQuestions {
            caller,
            questions,
            journal,
        });
    if let Some(waiting) = elsewhere.as_mut().filter(|waiting| waiting.is_open()) {
        // The copy of the questions for the operator counts against the caller as well. Without
        // memory for it, only the client can answer.
        let bytes = questions
            .iter()
            .map(|question| question.params.get().len())
            .sum();
        match state.session.request_quota.try_reserve(caller, bytes) {
            Ok(room) => state.journal_reservations.push(room),
            Err(_full) => waiting.leave_to_client(),
        }
    }
    elsewhere
}
