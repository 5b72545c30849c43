//! Starts a call that is, or may become, a task, and responds to its request: immediately if the
//! client requested a task, and otherwise when the call ends or takes long.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt as _;
use serde_json::{Map, Value};
use tokio::sync::oneshot;
use toolbay_background::QuotaExhausted;

use crate::exchange::in_flight::RegisteredRequest;
use crate::exchange::outbox::Outbox;
use crate::host::caller::Caller;
use crate::plugin_request::call_state::QuestionChannel;
use crate::plugin_request::completed_call::{CallResponse, CompletedCall};
use crate::plugin_request::encoded_call::EncodedCall;
use crate::plugin_request::pending_call::PendingCall;
use crate::plugin_request::task_decision::TaskMode;
use crate::plugin_request::{call_driver, elicitation};
use crate::protocol::jsonrpc::Error;
use crate::response::call_response;
use crate::session::client_session::Session;
use crate::tasks::{
    LiveTask, ReservationError, TaskEnd, TaskObserver, TaskOptions, TaskPhase, TaskState,
    TaskTable, error_size, serialized_size,
};

/// Starts a call that is, or may become, a task.
///
/// # Errors
///
/// There is no capacity for a task that the client requested.
pub(crate) async fn start(
    session: &Arc<Session>,
    caller: &Caller,
    calling: Box<PendingCall>,
    reply: &Outbox,
) -> Result<(), Error> {
    let request = calling.registration().clone();
    let tasks = session.server.tasks().clone();
    let revision = calling.revision();
    let (phase, ttl) = match calling.task_mode() {
        TaskMode::Task { ttl } => (TaskPhase::Task, ttl),
        TaskMode::Offered | TaskMode::None | TaskMode::Open(_) => (TaskPhase::Undecided, None),
    };
    let live = tasks.create(&caller.name, revision, ttl, phase);
    let live = live.ok_or_else(|| {
        call_response::internal_error("the system provides no random bytes").with_id(&request.id)
    })?;
    if phase == TaskPhase::Task
        && let Err(exhausted) = tasks.register(&live).await
    {
        session.in_flight.finish(&request);
        return Err(too_many_tasks_error(&tasks, exhausted).with_id(&request.id));
    }
    // From this point, the call belongs to the caller of this request and not to a session.
    let own = session.detached(Arc::new(caller.clone()));
    if phase == TaskPhase::Undecided {
        live.attach_peer(calling.observer(session, reply, live.cancel.clone()));
    }
    let (sender, receiver) = oneshot::channel();
    let running = run_task(tasks.clone(), Arc::clone(&live), own, calling, sender);
    session
        .server
        .calls()
        .spawn(Box::pin(tasks.running().track_future(running)));
    let responder = Arc::clone(session);
    let reply = reply.clone();
    session.spawn(async move {
        respond(&responder, &tasks, &live, &request, receiver, &reply).await;
    });
    Ok(())
}

/// Runs the call, and delivers its result to its current owner: the waiting request or the task.
async fn run_task(
    tasks: TaskTable,
    live: Arc<LiveTask>,
    session: Arc<Session>,
    calling: Box<PendingCall>,
    waiting: oneshot::Sender<CompletedCall>,
) {
    let updates = session.server.updates().clone();
    let observer = Arc::new(TaskObserver {
        live: Arc::clone(&live),
        updates,
    });
    let running = async {
        let (_request, driving) = call_driver::drive(
            calling,
            &session,
            QuestionChannel::Task(&live),
            observer,
            live.cancellation(),
        );
        driving.await
    };
    let panicked = |_| CompletedCall {
        response: Some(CallResponse::from_error(call_response::internal_error(
            "a task panicked",
        ))),
        place: None,
    };
    let arrived = AssertUnwindSafe(running)
        .catch_unwind()
        .await
        .unwrap_or_else(panicked);
    if live.decide_phase(TaskPhase::Request) == TaskPhase::Request {
        // The receiver is gone only if the request was cancelled.
        drop(waiting.send(arrived));
        return;
    }
    let CompletedCall { response, place } = arrived;
    let state = match response {
        Some(CallResponse { result, .. }) => TaskState::Ended(Arc::new(
            build_result(result, &session, &tasks, &live).await,
        )),
        None => TaskState::Cancelled,
    };
    drop(place);
    live.set_state(state);
    tasks.finish(&live).await;
}

/// Builds the result that the request would have received. A result that exceeds the memory for the
/// results of its caller becomes an error.
async fn build_result(
    result: Result<Map<String, Value>, Error>,
    session: &Session,
    tasks: &TaskTable,
    live: &LiveTask,
) -> TaskEnd {
    let task = live.task();
    let extension = task.revision.features().tasks_extension;
    let result = result.map(|mut result| {
        session.add_common_members(&mut result, task.revision);
        if extension {
            result
        } else {
            elicitation::with_related_task(result, &task.id)
        }
    });
    let bytes = result.as_ref().map_or_else(error_size, serialized_size);
    match (tasks.reserve(live, bytes).await, result) {
        (Ok(()), Ok(result)) => TaskEnd::from_result(&result).unwrap_or_else(|error| {
            TaskEnd::failed(call_response::internal_error(&error.to_string()))
        }),
        (Ok(()), Err(error)) => TaskEnd::failed(error),
        (Err(none), _) => TaskEnd::failed(lost_result_error(bytes, none)),
    }
}

/// Returns the error for a result of `bytes` bytes that exceeds the available memory.
fn lost_result_error(bytes: usize, none: ReservationError) -> Error {
    let ReservationError::Exhausted(exhausted) = none else {
        return call_response::internal_error("a task expired before its result was stored");
    };
    let whose = if matches!(exhausted, QuotaExhausted::Own(_)) {
        "of this caller"
    } else {
        "of all callers"
    };
    call_response::busy_error(&format!(
        "The result was lost: it has {bytes} bytes, which is more than the remaining space; the tasks {whose} can have {} bytes together (tasks.memory). Wait until some tasks expire, or request a smaller result, and call again.",
        exhausted.limit()
    ))
}

/// Returns the error for a task that exceeds the limits on tasks.
fn too_many_tasks_error(tasks: &TaskTable, exhausted: QuotaExhausted) -> Error {
    let TaskOptions {
        per_caller, total, ..
    } = tasks.options();
    let whose = if matches!(exhausted, QuotaExhausted::Own(_)) {
        "This caller has"
    } else {
        "All callers together have"
    };
    call_response::busy_error(&format!(
        "{whose} as many tasks, or results of tasks, as can be kept: {per_caller} of one caller and {total} in all \
         (tasks.per_caller, tasks.total, tasks.memory). Wait until some expire."
    ))
}

/// Responds to the request: with the result of the call, or with the task that it has become.
async fn respond(
    session: &Arc<Session>,
    tasks: &TaskTable,
    live: &Arc<LiveTask>,
    request: &RegisteredRequest,
    ended: oneshot::Receiver<CompletedCall>,
    reply: &Outbox,
) {
    let revision = live.task().revision;
    if live.phase() != TaskPhase::Task
        && let CallFate::Ended(completed) = wait_until_decided(tasks, live, request, ended).await
    {
        EncodedCall::encode(session, request.clone(), completed, revision)
            .send(session, reply)
            .await;
        return;
    }
    // From this point, clients poll the task, regardless of open streams.
    live.detach_peer();
    let task = live.task();
    let result = if revision.features().tasks_extension {
        let mut result = task.summary();
        result.insert("resultType".into(), "task".into());
        result
    } else {
        Map::from_iter([("task".to_owned(), task.summary().into())])
    };
    let answer = session.encode_result(&request.id, result, Some(revision));
    if !EncodedCall::new(request.clone(), answer)
        .send(session, reply)
        .await
    {
        // No client knows that the task exists.
        live.cancel.cancel();
    }
}

/// The fate of a call that may become a task.
enum CallFate {
    /// It ended before it became a task. Its result is the response to the request.
    Ended(CompletedCall),
    /// It takes long, and has become a task.
    Task,
}

/// Waits until the call has ended, or takes long and becomes a task.
async fn wait_until_decided(
    tasks: &TaskTable,
    live: &Arc<LiveTask>,
    request: &RegisteredRequest,
    mut ended: oneshot::Receiver<CompletedCall>,
) -> CallFate {
    let completed = tokio::select! {
        biased;
        () = request.cancelled.cancelled() => {
            live.cancel.cancel();
            None
        }
        completed = &mut ended => Some(completed),
        () = tokio::time::sleep(tasks.options().promotion_delay) => None,
    };
    if let Some(completed) = completed {
        return CallFate::Ended(completed.unwrap_or_else(|_| CompletedCall::cancelled()));
    }
    // A call that cannot be stored as a task continues as an ordinary call of its request.
    let kept = !request.cancelled.is_cancelled() && tasks.register(live).await.is_ok();
    let phase = if kept {
        TaskPhase::Task
    } else {
        TaskPhase::Request
    };
    if live.decide_phase(phase) != TaskPhase::Request {
        return CallFate::Task;
    }
    if kept {
        tasks.discard(live).await;
    }
    let completed = tokio::select! {
        biased;
        () = request.cancelled.cancelled() => {
            live.cancel.cancel();
            None
        }
        completed = ended => completed.ok(),
    };
    CallFate::Ended(completed.unwrap_or_else(CompletedCall::cancelled))
}
