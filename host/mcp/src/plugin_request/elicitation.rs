//! Elicitation: sends a plugin's questions to the client of a session, as requests on the stream of
//! the call. The call waits for the responses without a guest, a permit or a place in a queue.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;
use toolbay_background::QuotaPortion;
use toolbay_model::text::bounded_line;
use toolbay_model::{
    ApprovalState, CallError, CallFailure, CallJournal, Limit, Question, QuestionKind,
};

use crate::exchange::outbox::{Outbox, OutgoingMessage};
use crate::exchange::server_requests::{self, CallRequests, PendingResponse};
use crate::host::request_state::{self, STATE_LIFETIME};
use crate::protocol::jsonrpc::{self, Error, RequestId};
use crate::protocol::question_encoding;
use crate::protocol::revision::Revision;
use crate::session::client_session::Session;
use crate::tasks::{LiveTask, ReservationError};

/// Error code: the user rejected the request (MCP, "Sampling").
const USER_REJECTED_CODE: i32 = -1;

/// Member of `_meta` that names a task.
const RELATED_TASK_KEY: &str = "io.modelcontextprotocol/related-task";

/// Maximum length of a quoted client message, in bytes.
const MAX_QUOTED_BYTES: usize = 200;

/// Reason why there are no answers.
#[derive(Debug)]
pub(crate) enum NoAnswers {
    /// The client cancelled the call, or there is no client left to receive its result.
    Cancelled,
    /// The call fails.
    Failed(CallFailure),
}

/// Answers, by question key.
type AnswerMap = BTreeMap<String, String>;

/// A question without its parameters, which are not needed while it waits.
struct OpenQuestion {
    key: String,
    kind: QuestionKind,
}

/// Destination of the questions.
pub(crate) struct QuestionStream<'a> {
    pub(crate) session: &'a Session,
    pub(crate) reply: &'a Outbox,
    pub(crate) revision: Revision,
    /// Cancelled when the client cancels the waiting request.
    pub(crate) cancelled: &'a CancellationToken,
    /// Id of the task that has the questions, which is sent to clients.
    pub(crate) task: Option<&'a str>,
}

/// Sends the questions to the client, and adds the answers to the journal. Returns the quota
/// reservations of the answers.
///
/// # Errors
///
/// Returns the reason if there are no answers.
pub(crate) async fn ask_client(
    stream: &QuestionStream<'_>,
    questions: Vec<Question>,
    journal: &mut CallJournal,
) -> Result<Vec<QuotaPortion>, NoAnswers> {
    let QuestionStream {
        session,
        reply,
        cancelled,
        ..
    } = *stream;
    let (texts, requests) = register_requests(stream, &questions).map_err(call_failed)?;
    // `collect` would reuse the allocation of the questions, which is larger.
    let mut open = Vec::with_capacity(questions.len());
    open.extend(
        questions
            .into_iter()
            .map(|Question { key, kind, .. }| OpenQuestion { key, kind }),
    );
    let time = remaining_time(journal);
    let given = total_time(journal);
    let approval = journal.approval;
    let sent = SentRequests {
        requests,
        reply,
        count: AtomicUsize::new(0),
    };
    let mut ended = pin!(async move {
        tokio::select! {
            biased;
            () = cancelled.cancelled() => Err(NoAnswers::Cancelled),
            () = reply.closed() => Err(NoAnswers::Cancelled),
            // The responses would arrive too late.
            () = session.shutdown.closing.cancelled() => Err(NoAnswers::Failed(CallFailure::Call(CallError::Cancelled))),
            () = tokio::time::sleep(time) => timeout_outcome(given, approval),
        }
    });
    // Boxed, because this future is larger than the wait for the responses.
    let sending = Box::pin(async {
        session.wait_until_ready().await;
        sent.send(texts).await;
    });
    tokio::select! {
        biased;
        ended = &mut ended => return ended,
        () = sending => {}
    }
    let (answers, held) = tokio::select! {
        biased;
        ended = &mut ended => return ended,
        responses = sent.requests.responses() => collect_answers(&open, responses).map_err(call_failed)?,
    };
    journal.answers.extend(answers);
    Ok(held)
}

/// Returns the time left for the answers.
pub(crate) fn remaining_time(journal: &CallJournal) -> Duration {
    if journal.until == 0 {
        return STATE_LIFETIME;
    }
    Duration::from_millis(
        journal
            .until
            .saturating_sub(request_state::unix_millis_now()),
    )
}

/// Leaves the questions to the next client request for the task, waits, and adds the answers to the
/// journal. Returns the quota reservations of the answers.
///
/// # Errors
///
/// Returns the reason if there are no answers.
pub(crate) async fn wait_for_task_answers(
    session: &Session,
    live: &LiveTask,
    questions: Vec<Question>,
    journal: &mut CallJournal,
) -> Result<Vec<QuotaPortion>, NoAnswers> {
    let asking =
        session
            .server
            .tasks()
            .ask(live, questions)
            .await
            .map_err(|no_room| match no_room {
                ReservationError::Exhausted(_) => call_failed(
                    "The questions of this caller's tasks have reached their limit (tasks.memory)."
                        .to_owned(),
                ),
                ReservationError::Removed => NoAnswers::Cancelled,
            })?;
    let (answers, held) = tokio::select! {
        biased;
        () = live.cancellation().cancelled() => return Err(NoAnswers::Cancelled),
        answers = asking.wait_for_answers() => answers.map_err(NoAnswers::Failed)?,
        () = session.shutdown.closing.cancelled() => return Err(NoAnswers::Failed(CallFailure::Call(CallError::Cancelled))),
        () = tokio::time::sleep(remaining_time(journal)) => return timeout_outcome(total_time(journal), journal.approval),
    };
    journal.answers.extend(answers);
    Ok(held)
}

/// Encodes the requests, and registers them.
fn register_requests<'a>(
    stream: &QuestionStream<'a>,
    questions: &[Question],
) -> Result<(Vec<Vec<u8>>, CallRequests<'a>), String> {
    let QuestionStream {
        session,
        revision,
        task,
        ..
    } = *stream;
    let params = questions.iter().map(|question| {
        let params = question_encoding::request_params(question, revision)?;
        Ok(if let Some(task) = task {
            Some(with_related_task(params.unwrap_or_default(), task))
        } else {
            params
        })
    });
    let params = params.collect::<Result<Vec<_>, String>>();
    let params =
        params.map_err(|what| format!("The question could not be sent to the client: {what}."))?;
    let requests = session.pending.register(questions.len());
    let requests = requests.ok_or_else(|| {
        format!(
            "The client has {} unanswered questions, and it can receive no more.",
            server_requests::MAX_PENDING_REQUESTS
        )
    })?;
    let asked = requests.ids().into_iter().zip(questions).zip(&params);
    let texts = asked.map(|((id, question), params)| {
        jsonrpc::request(&id, question.kind.method(), params.as_ref())
    });
    Ok((texts.collect(), requests))
}

/// Adds the task id to the `_meta` of a message (MCP 2025-11-25, "Related Task Metadata").
pub(crate) fn with_related_task(mut message: Map<String, Value>, task: &str) -> Map<String, Value> {
    if let Some(meta) = message
        .entry("_meta")
        .or_insert_with(|| json!({}))
        .as_object_mut()
    {
        meta.insert(RELATED_TASK_KEY.into(), json!({"taskId": task}));
    }
    message
}

/// Returns the answers by question key, and their quota reservations.
fn collect_answers(
    questions: &[OpenQuestion],
    responses: Vec<Option<PendingResponse>>,
) -> Result<(AnswerMap, Vec<QuotaPortion>), String> {
    let mut answers = AnswerMap::new();
    let mut held = Vec::new();
    for (OpenQuestion { key, kind }, response) in questions.iter().zip(responses) {
        let answer = match response {
            Some(Ok((text, portion))) => {
                held.push(portion);
                text.into()
            }
            Some(Err(error))
                if error.code == USER_REJECTED_CODE
                    && matches!(kind, QuestionKind::Form | QuestionKind::Url) =>
            {
                r#"{"action":"decline"}"#.to_owned()
            }
            // The user gave no answer, whatever the reason.
            Some(Err(error)) if matches!(kind, QuestionKind::Form | QuestionKind::Url) => {
                tracing::debug!("{}", refusal_message(key, *kind, &error));
                r#"{"action":"cancel"}"#.to_owned()
            }
            Some(Err(error)) => return Err(refusal_message(key, *kind, &error)),
            // Another question has an error.
            None => continue,
        };
        answers.insert(key.clone(), answer);
    }
    Ok((answers, held))
}

/// Returns the total time that the answers may take.
fn total_time(journal: &CallJournal) -> Duration {
    Duration::from_millis(journal.until.saturating_sub(journal.began))
}

/// Returns the outcome of questions that were not answered in time. If a plugin asked, its call
/// fails. If the host asked for approval, it decides without an answer.
fn timeout_outcome(
    given: Duration,
    approval: ApprovalState,
) -> Result<Vec<QuotaPortion>, NoAnswers> {
    if matches!(approval, ApprovalState::Asked(_)) {
        return Ok(Vec::new());
    }
    Err(NoAnswers::Failed(CallFailure::Call(CallError::Limit {
        limit: Limit::AskTime(given),
        tool: None,
    })))
}

fn refusal_message(key: &str, kind: QuestionKind, error: &Error) -> String {
    let Error { code, message, .. } = error;
    format!(
        "The client did not answer {key:?} ({}): error {code}, {}.",
        kind.method(),
        bounded_line(message, MAX_QUOTED_BYTES)
    )
}

fn call_failed(what: String) -> NoAnswers {
    NoAnswers::Failed(CallFailure::Call(CallError::Failed(what)))
}

/// Requests that were sent to a client. Dropping this notifies the client that the missing
/// responses are no longer needed.
struct SentRequests<'a> {
    requests: CallRequests<'a>,
    reply: &'a Outbox,
    /// Number of requests that were sent.
    count: AtomicUsize,
}

impl SentRequests<'_> {
    /// Sends the requests, and waits for capacity.
    async fn send(&self, texts: Vec<Vec<u8>>) {
        for text in texts {
            if let Some(capacity) = self.reply.reserve(text.len()).await {
                self.count.fetch_add(1, Ordering::Relaxed);
                capacity.send(OutgoingMessage::request(text));
            }
        }
    }
}

impl Drop for SentRequests<'_> {
    fn drop(&mut self) {
        for id in self.requests.unanswered(self.count.load(Ordering::Relaxed)) {
            let params = WithdrawnQuestion {
                request_id: &id,
                reason: "no request waits for the answer any more",
            };
            let text = jsonrpc::notification("notifications/cancelled", Some(&params));
            self.reply.try_send(OutgoingMessage::notification(text));
        }
    }
}

#[derive(serde::Serialize)]
struct WithdrawnQuestion<'a> {
    #[serde(rename = "requestId")]
    request_id: &'a RequestId,
    reason: &'static str,
}
