//! `skills/get`: the entry of one skill, by the URI of its `SKILL.md`.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::dispatch::paging::ListResult;
use crate::host::caller::Caller;
use crate::host::list_source::LoadedPart;
use crate::protocol::jsonrpc::Error;
use crate::protocol::params::read;
use crate::protocol::revision::Revision;
use crate::response::call_response;
use crate::session::client_session::Session;

#[derive(Deserialize)]
struct GetSkillParams {
    uri: String,
}

/// Returns the entry of a skill. Waits for plugins that are still loading at startup.
///
/// # Errors
///
/// Returns an error if the parameters are malformed, or if the skill does not exist or the caller
/// may not read it.
pub(crate) async fn answer(
    session: &Session,
    caller: &Caller,
    params: Option<&RawValue>,
    revision: Revision,
) -> Result<ListResult, Error> {
    let GetSkillParams { uri } = read(params)?;
    session
        .server
        .loading()
        .wait_for(LoadedPart::Everything)
        .await;
    let uri = session.server.lists().listed_uri(&uri).unwrap_or(uri);
    let skill = session.server.lists().skill(&uri, &caller.rights);
    let skill = skill.ok_or_else(|| call_response::not_found_at(&uri, "Skill not found"))?;
    Ok(ListResult::new(
        session,
        caller,
        revision,
        "skill",
        skill.entry.clone(),
        None,
    ))
}
