//! `tasks/get`: returns the state of a task, and in the extension also its questions and its
//! result.

use serde::Deserialize;
use serde_json::value::RawValue;

use toolbay_model::text::bounded_line;

use crate::exchange::outbox::OutgoingMessage;
use crate::host::caller::Caller;
use crate::plugin_request::task_decision::missing_extension;
use crate::protocol::jsonrpc::{self, Error, INVALID_PARAMS, RequestId};
use crate::protocol::message_context::RequestContext;
use crate::protocol::params::read;
use crate::response::call_response;
use crate::session::client_session::Session;

/// Maximum length of an id in a message, in bytes: longer than any task id.
const MAX_QUOTED_ID_BYTES: usize = 100;

/// Parameters of the methods for a single task.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TaskParams {
    pub(super) task_id: String,
}

/// Returns the error for a task that the caller does not have.
pub(super) fn unknown_task(id: &str) -> Error {
    let message = format!(
        "Unknown task: {}. Tasks are removed when they expire.",
        bounded_line(id, MAX_QUOTED_ID_BYTES)
    );
    Error::new(INVALID_PARAMS, message)
}

/// Checks that the client declared the tasks extension, in revisions where tasks are an extension.
pub(super) fn check_tasks_declared(context: &RequestContext) -> Result<(), Error> {
    if context.revision.features().tasks_extension && !context.capabilities.supports_tasks() {
        return Err(missing_extension("Methods of tasks cannot be called"));
    }
    Ok(())
}

/// Returns the response to the request with this id.
///
/// # Errors
///
/// Returns an error if the caller has no such task.
pub(crate) async fn answer(
    session: &Session,
    caller: &Caller,
    id: &RequestId,
    params: Option<&RawValue>,
    context: &RequestContext,
) -> Result<OutgoingMessage, Error> {
    check_tasks_declared(context)?;
    let TaskParams { task_id } = read(params)?;
    let task = session
        .server
        .tasks()
        .get(&caller.name, &task_id, context.revision)
        .await;
    let task = task.ok_or_else(|| unknown_task(&task_id))?;
    if !context.revision.features().tasks_extension {
        return Ok(session.encode_result(id, task.summary(), Some(context.revision)));
    }
    let mut detailed = task
        .detailed()
        .map_err(|what| call_response::internal_error(&what))?;
    session.add_common_members(&mut detailed.summary, context.revision);
    Ok(OutgoingMessage::response(jsonrpc::result(id, &detailed)))
}
