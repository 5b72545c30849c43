//! `tasks/get`: how far a task is, and in the extension also its questions and its result.

use serde::Deserialize;
use serde_json::value::RawValue;

use toolbay_model::text::shown;

use crate::caller::Caller;
use crate::jsonrpc::{self, Error, INVALID_PARAMS, RequestId};
use crate::outbox::OutgoingMessage;
use crate::outcome;
use crate::params::read;
use crate::rules::RequestContext;
use crate::session::Session;
use crate::wish::undeclared;

/// How much of an id is shown, in bytes: more than a task's id has.
const ID: usize = 100;

/// The parameters of the methods that are about one task.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TaskParams {
    pub(super) task_id: String,
}

/// The error for a task that the caller does not have.
pub(super) fn unknown(id: &str) -> Error {
    let message = format!("Unknown task: {}. Tasks are forgotten when their time is over.", shown(id, ID));
    Error::new(INVALID_PARAMS, message)
}

/// Requires that the client declared the extension, where tasks are one.
pub(super) fn check_declared(rules: &RequestContext) -> Result<(), Error> {
    if rules.revision.features().tasks_extension && !rules.capabilities.has_tasks() {
        return Err(undeclared("Methods of tasks cannot be called"));
    }
    Ok(())
}

/// Answers the request with this id.
///
/// # Errors
///
/// The caller has no such task.
pub(crate) async fn answer(
    session: &Session,
    caller: &Caller,
    id: &RequestId,
    params: Option<&RawValue>,
    rules: &RequestContext,
) -> Result<OutgoingMessage, Error> {
    check_declared(rules)?;
    let TaskParams { task_id } = read(params)?;
    let task = session.host.tasks().get(&caller.name, &task_id, rules.revision).await;
    let task = task.ok_or_else(|| unknown(&task_id))?;
    if !rules.revision.features().tasks_extension {
        return Ok(session.result(id, task.summary(), Some(rules.revision)));
    }
    let mut detailed = task.detailed().map_err(|what| outcome::internal(&what))?;
    session.complete(&mut detailed.summary, rules.revision);
    Ok(OutgoingMessage::answer(jsonrpc::result(id, &detailed)))
}
