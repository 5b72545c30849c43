//! Begins a call that is, or may become, a task, and answers its request: at once if the client wants a task, and otherwise
//! when the call has ended or takes long.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt as _;
use serde_json::{Map, Value};
use tokio::sync::oneshot;

use crate::caller::Caller;
use crate::entry::{Arrived, Called, Calling, Told};
use crate::in_flight::Registered;
use crate::interview;
use crate::jsonrpc::Error;
use crate::outbox::{Outbox, Outgoing};
use crate::outcome;
use crate::quota::Exhausted;
use crate::revision::Revision;
use crate::session::Session;
use crate::tasks::{
    Ended, Live, NoRoom, Phase, State, TaskObserver, TaskOptions, Tasks, bytes_of_error, written_bytes,
};
use crate::wish::Wish;

/// Begins a call that is, or may become, a task.
///
/// # Errors
///
/// There is no room for a task that the client wants.
pub(crate) async fn start(
    session: &Arc<Session>,
    caller: &Caller,
    calling: Box<Calling>,
    reply: &Outbox,
) -> Result<(), Error> {
    let (request, tasks) = (calling.request().clone(), session.host.tasks().clone());
    let revision = calling.revision();
    let (phase, ttl) = match calling.wish() {
        Wish::Task { ttl } => (Phase::Kept, ttl),
        Wish::Offered | Wish::None | Wish::Open(_) => (Phase::Waited, None),
    };
    let live = tasks.create(&caller.name, revision, ttl, phase);
    let live = live.ok_or_else(|| outcome::internal("the system provides no random bytes").of(&request.id))?;
    if phase == Phase::Kept
        && let Err(exhausted) = tasks.add(&live).await
    {
        session.in_flight.finish(&request);
        return Err(full(&tasks, exhausted).of(&request.id));
    }
    // The call belongs to no session from here on, but to the caller of this request.
    let own = session.detached(Arc::new(caller.clone()));
    if phase == Phase::Waited {
        live.report_to(calling.observer(session, reply, live.cancel.clone()));
    }
    let (sender, receiver) = oneshot::channel();
    let running = run(tasks.clone(), Arc::clone(&live), own, calling, sender);
    session.host.spawn(Box::pin(tasks.running().track_future(running)));
    let (told, reply) = (Arc::clone(session), reply.clone());
    session.spawn(async move {
        answer(&told, &tasks, &live, &request, receiver, &reply).await;
    });
    Ok(())
}

/// Runs the call. Whoever is responsible for it by then gets how it ended.
async fn run(
    tasks: Tasks,
    live: Arc<Live>,
    session: Arc<Session>,
    calling: Box<Calling>,
    waiting: oneshot::Sender<Arrived>,
) {
    let updates = session.host.updates().clone();
    let observer = Arc::new(TaskObserver { live: Arc::clone(&live), updates });
    let traveling = AssertUnwindSafe(calling.run_as_task(&session, &live, observer)).catch_unwind();
    let panicked = |_| Arrived { told: Some(Told::failed(outcome::internal("a task panicked"))), place: None };
    let arrived = traveling.await.unwrap_or_else(panicked);
    if live.turn(Phase::Given) == Phase::Given {
        // If nobody waits any more, the request was cancelled.
        drop(waiting.send(arrived));
        return;
    }
    let Arrived { told, place } = arrived;
    let state = match told {
        Some(Told { result, .. }) => State::Ended(Arc::new(ended(result, &session, &tasks, &live).await)),
        None => State::Cancelled,
    };
    drop(place);
    live.turn_to(state);
    tasks.settle(&live).await;
}

/// What the request would have been answered with. It is written when there is room for it among the results of its caller.
async fn ended(result: Result<Map<String, Value>, Error>, session: &Session, tasks: &Tasks, live: &Live) -> Ended {
    let task = live.task();
    let extension = task.revision.features().tasks_extension;
    let result = result.map(|mut result| {
        session.complete(&mut result, task.revision);
        if extension { result } else { interview::related(result, &task.id) }
    });
    let bytes = result.as_ref().map_or_else(bytes_of_error, written_bytes);
    match (tasks.reserve(live, bytes).await, result) {
        (Ok(()), Ok(result)) => {
            Ended::with(&result).unwrap_or_else(|error| Ended::failed(outcome::internal(&error.to_string())))
        }
        (Ok(()), Err(error)) => Ended::failed(error),
        (Err(none), _) => Ended::failed(lost(bytes, none)),
    }
}

/// The error for a result of this many bytes for which there is no room.
fn lost(bytes: usize, none: NoRoom) -> Error {
    let NoRoom::Exhausted(exhausted) = none else { return outcome::internal("the time of a task was over") };
    let whose = if matches!(exhausted, Exhausted::Own(_)) { "those of this caller" } else { "all of them" };
    outcome::busy(&format!(
        "The result was lost: it has {bytes} bytes, and of tasks {whose} can take {} bytes together (tasks.memory), more \
         than what is left. Wait until some are forgotten, or have less returned, and call again.",
        exhausted.most()
    ))
}

/// The error for a task for which there is no room.
fn full(tasks: &Tasks, exhausted: Exhausted) -> Error {
    let TaskOptions { each, all, .. } = tasks.options();
    let whose = if matches!(exhausted, Exhausted::Own(_)) { "This caller has" } else { "All callers together have" };
    outcome::busy(&format!(
        "{whose} as many tasks, or results of tasks, as can be kept: {each} of one caller and {all} in all (tasks.each, \
         tasks.all, tasks.memory). Wait until some are forgotten."
    ))
}

/// Answers the request: with the end of the call, or with the task that it has become.
async fn answer(
    session: &Arc<Session>,
    tasks: &Tasks,
    live: &Arc<Live>,
    request: &Registered,
    mut ended: oneshot::Receiver<Arrived>,
    reply: &Outbox,
) {
    let revision = live.task().revision;
    if live.phase() != Phase::Kept {
        let arrived = tokio::select! {
            biased;
            () = request.cancelled.cancelled() => {
                live.cancel.cancel();
                None
            }
            arrived = &mut ended => Some(arrived),
            () = tokio::time::sleep(tasks.options().after) => None,
        };
        if let Some(arrived) = arrived {
            return given(session, request, arrived.ok(), revision, reply).await;
        }
        // A task that cannot be kept goes on as the call of its request.
        let kept = !request.cancelled.is_cancelled() && tasks.add(live).await.is_ok();
        if live.turn(if kept { Phase::Kept } else { Phase::Given }) == Phase::Given {
            if kept {
                tasks.forget(live).await;
            }
            let arrived = tokio::select! {
                biased;
                () = request.cancelled.cancelled() => {
                    live.cancel.cancel();
                    None
                }
                arrived = ended => arrived.ok(),
            };
            return given(session, request, arrived, revision, reply).await;
        }
    }
    // From here on, clients ask for the task, whatever stream is open.
    live.detach();
    let task = live.task();
    let result = if revision.features().tasks_extension {
        let mut result = task.summary();
        result.insert("resultType".into(), "task".into());
        result
    } else {
        Map::from_iter([("task".to_owned(), task.summary().into())])
    };
    let answer = session.result(&request.id, result, Some(revision));
    if !Called::new(request.clone(), Some(answer), None).send(session, reply).await {
        // Nobody knows that it exists.
        live.cancel.cancel();
    }
}

/// Answers the request with the end of its call.
async fn given(session: &Session, request: &Registered, arrived: Option<Arrived>, revision: Revision, reply: &Outbox) {
    let Arrived { told, place } = arrived.unwrap_or(Arrived { told: None, place: None });
    let answer: Option<Outgoing> = told.map(|told| told.encode(session, &request.id, revision));
    Called::new(request.clone(), answer, place).send(session, reply).await;
}
