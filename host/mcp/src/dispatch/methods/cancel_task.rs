//! `tasks/cancel`: stops the call of a task.

use serde_json::Map;
use serde_json::value::RawValue;

use super::MethodResult;
use super::get_task::{TaskParams, check_tasks_declared, unknown_task};
use crate::host::caller::Caller;
use crate::protocol::jsonrpc::{Error, INVALID_PARAMS};
use crate::protocol::message_context::RequestContext;
use crate::protocol::params::read;
use crate::session::client_session::Session;
use crate::tasks::CancelError;

/// Cancels a task of the caller. In the tasks extension, a task that has ended is left as it is.
pub(crate) async fn answer(
    session: &Session,
    caller: &Caller,
    params: Option<&RawValue>,
    context: &RequestContext,
) -> MethodResult {
    check_tasks_declared(context)?;
    let TaskParams { task_id } = read(params)?;
    let is_extension = context.revision.features().tasks_extension;
    match session
        .server
        .tasks()
        .cancel(&caller.name, &task_id, context.revision)
        .await
    {
        Ok(_) | Err(CancelError::Ended) if is_extension => Ok(Map::new()),
        Ok(task) => Ok(task.summary()),
        Err(CancelError::Ended) => Err(Error::new(
            INVALID_PARAMS,
            "The task has ended: it cannot be cancelled.",
        )),
        Err(CancelError::Unknown) => Err(unknown_task(&task_id)),
    }
}
