//! `tasks/result`: waits until a task has ended, and sends its questions to the client in the
//! meantime.

use std::sync::Arc;

use toolbay_model::{CallError, CallFailure, CallJournal};

use super::get_task::{TaskParams, unknown_task};
use crate::exchange::in_flight::RegisteredRequest;
use crate::exchange::outbox::{Outbox, OutgoingMessage};
use crate::host::caller::Caller;
use crate::plugin_request::elicitation::{self, NoAnswers, QuestionStream};
use crate::protocol::jsonrpc::{self, Error, INVALID_REQUEST, Request};
use crate::protocol::params::read;
use crate::protocol::revision::Revision;
use crate::session::client_session::Session;
use crate::tasks::{LiveTask, Task, TaskOutcome, TaskState};

/// Starts to wait for the end of a task. Sends the response when the task has ended.
///
/// # Errors
///
/// Returns an error if the caller has no such task, or has too many open requests.
pub(crate) async fn open(
    session: &Arc<Session>,
    caller: &Caller,
    request: &Request<'_>,
    revision: Revision,
    reply: &Outbox,
) -> Result<(), Error> {
    let TaskParams { task_id } = read(request.params)?;
    if session
        .server
        .tasks()
        .get(&caller.name, &task_id, revision)
        .await
        .is_none()
    {
        return Err(unknown_task(&task_id));
    }
    if !session.can_accept_request() {
        return Err(Error::new(
            INVALID_REQUEST,
            "this client has too many open requests",
        ));
    }
    let registered = session
        .in_flight
        .register(&request.id, session.shutdown.ended.child_token());
    let request = registered.ok_or_else(|| {
        Error::new(
            INVALID_REQUEST,
            "a request with this id is already in progress",
        )
    })?;
    let owned_session = Arc::clone(session);
    let owner = caller.name.clone();
    let reply = reply.clone();
    session.spawn(async move {
        let session = owned_session;
        let answer = tokio::select! {
            biased;
            () = request.cancelled.cancelled() => None,
            () = session.shutdown.closing.cancelled() => {
                Some(Err(Error::new(INVALID_REQUEST, "The server is shutting down.")))
            }
            () = reply.closed() => None,
            ended = wait_until_ended(&session, &owner, &task_id, &request, revision, &reply) => Some(ended),
        };
        let answer = answer.map(|ended| match ended {
            Ok(task) => result_message(&session, &request, &task),
            Err(error) => session.encode_rejection(&error.with_id(&request.id)),
        });
        if session.in_flight.finish(&request)
            && let Some(answer) = answer
        {
            reply.send(answer).await;
        }
    });
    Ok(())
}

/// Waits until the task has ended.
async fn wait_until_ended(
    session: &Session,
    owner: &str,
    id: &str,
    request: &RegisteredRequest,
    revision: Revision,
    reply: &Outbox,
) -> Result<Arc<Task>, Error> {
    loop {
        let tasks = session.server.tasks();
        let Some(live) = tasks.get_live(owner, id) else {
            return tasks
                .get(owner, id, revision)
                .await
                .ok_or_else(|| unknown_task(id));
        };
        // Subscribes before the check, to observe changes in the meantime.
        let mut states = live.subscribe_states();
        let task = live.task();
        if task.state.is_final() {
            return Ok(task);
        }
        if let (TaskState::InputRequired(_), Ok(_asking)) =
            (&task.state, live.asking_lock.try_lock())
        {
            ask_client(session, owner, &live, request, revision, reply).await;
            continue;
        }
        tokio::select! {
            ended = states.changed() => drop(ended),
            // The request that sent the questions has ended.
            _asking = live.asking_lock.lock(), if matches!(task.state, TaskState::InputRequired(_)) => {}
        }
    }
}

/// Sends the questions of a task to the client that waits for its result. They are withdrawn as
/// soon as the task no longer needs answers, because it was cancelled or its time limit has passed.
async fn ask_client(
    session: &Session,
    owner: &str,
    live: &LiveTask,
    request: &RegisteredRequest,
    revision: Revision,
    reply: &Outbox,
) {
    let open_questions = live.unanswered();
    let questions = open_questions
        .iter()
        .map(|open_question| open_question.question.clone())
        .collect();
    let mut journal = CallJournal::default();
    let id = live.task().id.clone();
    let stream = QuestionStream {
        session,
        reply,
        revision,
        cancelled: &request.cancelled,
        task: Some(&id),
    };
    let answers = tokio::select! {
        biased;
        () = wait_until_answered(live) => return,
        asked = elicitation::ask_client(&stream, questions, &mut journal) => asked,
    };
    match answers {
        Ok(reservation) => {
            // Replaced below by one reservation per answer, which the task holds.
            drop(reservation);
            for open_question in &open_questions {
                let Some(answer) = journal.answers.remove(&open_question.question.key) else {
                    continue;
                };
                let reserve = |bytes| session.request_quota.try_reserve(owner, bytes);
                if live.answer(&open_question.key, answer, reserve).is_err() {
                    let reason = "There is no capacity for the client's answers: too many requests are running or queued.";
                    live.fail_questions(CallFailure::Call(CallError::Failed(reason.to_owned())));
                }
            }
        }
        Err(NoAnswers::Failed(failure)) => live.fail_questions(failure),
        // Another request for the result may send the questions again.
        Err(NoAnswers::Cancelled) => {}
    }
}

/// Waits until the task has no open questions.
async fn wait_until_answered(live: &LiveTask) {
    // Subscribes before the check, to observe changes in the meantime.
    let mut states = live.subscribe_states();
    while matches!(live.task().state, TaskState::InputRequired(_)) {
        if states.changed().await.is_err() {
            return;
        }
    }
}

/// Returns the response.
fn result_message(session: &Session, request: &RegisteredRequest, task: &Task) -> OutgoingMessage {
    let error = match &task.state {
        TaskState::Ended(ended) => match &ended.outcome {
            TaskOutcome::Result(text) => {
                return OutgoingMessage::response(jsonrpc::result(&request.id, text));
            }
            TaskOutcome::Error(error) => error.clone(),
        },
        _ => Error::new(INVALID_REQUEST, "The task was cancelled: it has no result."),
    };
    OutgoingMessage::response(session.encode_error(&error.with_id(&request.id)))
}
