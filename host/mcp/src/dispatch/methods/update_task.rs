//! `tasks/update`: accepts answers to the questions of a task.

use serde_json::Map;
use serde_json::value::RawValue;

use super::MethodResult;
use super::get_task::{TaskParams, check_tasks_declared, unknown_task};
use crate::host::caller::Caller;
use crate::plugin_request::input_responses::RetryInput;
use crate::plugin_request::params_memory::busy_rejection;
use crate::protocol::jsonrpc::{Error, INVALID_REQUEST};
use crate::protocol::message_context::RequestContext;
use crate::protocol::params::read;
use crate::session::client_session::Session;

/// Accepts answers to all or some of the questions. Ignores other answers.
pub(crate) async fn answer(
    session: &Session,
    caller: &Caller,
    params: Option<&RawValue>,
    context: &RequestContext,
) -> MethodResult {
    check_tasks_declared(context)?;
    let TaskParams { task_id } = read(params)?;
    let RetryInput { responses, .. } = RetryInput::read(params)?;
    let tasks = session.server.tasks();
    if tasks
        .get(&caller.name, &task_id, context.revision)
        .await
        .is_none()
    {
        return Err(unknown_task(&task_id));
    }
    if let Some(live) = tasks.get_live(&caller.name, &task_id) {
        for (key, answer) in responses {
            let reserve = |bytes| session.request_quota.try_reserve(&caller.name, bytes);
            live.answer(&key, answer, reserve).map_err(|exhausted| {
                Error::new(
                    INVALID_REQUEST,
                    busy_rejection(exhausted).reason.to_string(),
                )
            })?;
        }
    }
    Ok(Map::new())
}
