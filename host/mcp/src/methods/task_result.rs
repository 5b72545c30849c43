//! `tasks/result`: waits until a task has ended, and asks the client its questions meanwhile.

use std::sync::Arc;

use toolbay_model::{CallError, Failure, Journal};

use super::get_task::{Params, unknown};
use crate::caller::Caller;
use crate::in_flight::Registered;
use crate::interview::{self, Ended, Stream};
use crate::jsonrpc::{self, Error, INVALID_REQUEST, Request};
use crate::outbox::{Outbox, Outgoing};
use crate::params::read;
use crate::revision::Revision;
use crate::session::Session;
use crate::tasks::{Live, Outcome, State, Task};

/// Waits for the end of a task. The response is sent then.
///
/// # Errors
///
/// The caller has no such task, or too many requests open.
pub(crate) async fn open(
    session: &Arc<Session>,
    caller: &Caller,
    request: &Request<'_>,
    revision: Revision,
    reply: &Outbox,
) -> Result<(), Error> {
    let Params { task_id } = read(request.params)?;
    if session.host.tasks().get(&caller.name, &task_id, revision).await.is_none() {
        return Err(unknown(&task_id));
    }
    if !session.has_room() {
        return Err(Error::new(INVALID_REQUEST, "this client has too many open requests"));
    }
    let registered = session.in_flight.begin(&request.id, session.life.ended.child_token());
    let request =
        registered.ok_or_else(|| Error::new(INVALID_REQUEST, "a request with this id is already in progress"))?;
    let (waiting, owner, reply) = (Arc::clone(session), caller.name.clone(), reply.clone());
    session.spawn(async move {
        let session = waiting;
        let answer = tokio::select! {
            biased;
            () = request.cancelled.cancelled() => None,
            () = session.life.closing.cancelled() => {
                Some(Err(Error::new(INVALID_REQUEST, "The server is shutting down.")))
            }
            () = reply.closed() => None,
            ended = ended(&session, &owner, &task_id, &request, revision, &reply) => Some(ended),
        };
        let answer = answer.map(|ended| match ended {
            Ok(task) => result(&session, &request, &task),
            Err(error) => session.refusal(&error.of(&request.id)),
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
async fn ended(
    session: &Session,
    owner: &str,
    id: &str,
    request: &Registered,
    revision: Revision,
    reply: &Outbox,
) -> Result<Arc<Task>, Error> {
    loop {
        let tasks = session.host.tasks();
        let Some(live) = tasks.live(owner, id) else {
            return tasks.get(owner, id, revision).await.ok_or_else(|| unknown(id));
        };
        // Created first: it also notices what happens meanwhile.
        let mut states = live.states();
        let task = live.task();
        if task.state.is_final() {
            return Ok(task);
        }
        if let (State::InputRequired(_), Ok(_asking)) = (&task.state, live.asking.try_lock()) {
            ask(session, owner, &live, request, revision, reply).await;
            continue;
        }
        tokio::select! {
            ended = states.changed() => drop(ended),
            // Whoever asked is gone.
            _asking = live.asking.lock(), if matches!(task.state, State::InputRequired(_)) => {}
        }
    }
}

/// Puts the questions of a task to the client that waits for its result. They are withdrawn as soon as the task does not
/// ask them any more: it was cancelled, or the time for the answers is over.
async fn ask(session: &Session, owner: &str, live: &Live, request: &Registered, revision: Revision, reply: &Outbox) {
    let open = live.open();
    let questions = open.iter().map(|asked| asked.question.clone()).collect();
    let mut journal = Journal::default();
    let id = live.task().id.clone();
    let stream = Stream { session, reply, revision, cancelled: &request.cancelled, task: Some(&id) };
    let asked = tokio::select! {
        biased;
        () = settled(live) => return,
        asked = interview::conduct(&stream, questions, &mut journal) => asked,
    };
    match asked {
        Ok(held) => {
            // They are counted again, one by one, for the call.
            drop(held);
            for asked in &open {
                let Some(answer) = journal.answers.remove(&asked.question.key) else { continue };
                let take = |bytes| session.intake.take(owner, bytes);
                if live.answer(&asked.key, answer, take).is_err() {
                    let what = "The client's answers found no room: too many requests run or wait.";
                    live.refuse(Failure::Call(CallError::Failed(what.to_owned())));
                }
            }
        }
        Err(Ended::Failed(failure)) => live.refuse(failure),
        // Another request for the result may ask again.
        Err(Ended::Cancelled) => {}
    }
}

/// Waits until the task asks nothing.
async fn settled(live: &Live) {
    // Created first: it also notices what happens meanwhile.
    let mut states = live.states();
    while matches!(live.task().state, State::InputRequired(_)) {
        if states.changed().await.is_err() {
            return;
        }
    }
}

/// The response.
fn result(session: &Session, request: &Registered, task: &Task) -> Outgoing {
    let error = match &task.state {
        State::Ended(ended) => match &ended.outcome {
            Outcome::Result(text) => return Outgoing::answer(jsonrpc::result(&request.id, text)),
            Outcome::Error(error) => error.clone(),
        },
        _ => Error::new(INVALID_REQUEST, "The task was cancelled: it has no result."),
    };
    Outgoing::answer(session.encode_error(&error.of(&request.id)))
}
