//! `tasks/list`: returns a page of the caller's tasks.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::MethodResult;
use crate::host::caller::Caller;
use crate::protocol::jsonrpc::{Error, METHOD_NOT_FOUND};
use crate::protocol::params::read;
use crate::protocol::revision::Revision;
use crate::session::client_session::Session;

#[derive(Deserialize)]
struct ListTasksParams {
    cursor: Option<String>,
}

/// Returns a page of the caller's tasks, in order of creation. Callers that are identified only by
/// their address have no list, because several callers may share an address.
pub(crate) async fn answer(
    session: &Session,
    caller: &Caller,
    params: Option<&RawValue>,
    revision: Revision,
) -> MethodResult {
    if !caller.is_identified() {
        return Err(Error::new(
            METHOD_NOT_FOUND,
            "Tasks are listed only for callers that authenticate.",
        ));
    }
    let ListTasksParams { cursor } = read(params)?;
    // The cursor is the id of the last task of the previous page.
    let limit = session.server.options().page_size;
    let mut tasks = session
        .server
        .tasks()
        .list(&caller.name, cursor.as_deref(), limit + 1, revision)
        .await;
    let has_more = tasks.len() > limit;
    tasks.truncate(limit);
    let mut result = Map::new();
    if let Some(last) = tasks.last().filter(|_| has_more) {
        result.insert("nextCursor".into(), last.id.as_ref().into());
    }
    result.insert(
        "tasks".into(),
        tasks
            .iter()
            .map(|task| Value::from(task.summary()))
            .collect(),
    );
    Ok(result)
}
