//! `server/discover`: the supported revisions and capabilities, for clients without a session.

use serde_json::{Map, json};

use super::{MethodResult, add_instructions};
use crate::host::caller::Caller;
use crate::protocol::revision::Revision;
use crate::response::server_description;
use crate::session::client_session::Session;

/// Time that clients may cache the result, in ms. Only the instructions in it change, with the
/// plugins.
const DISCOVER_TTL_MS: u64 = 60_000;

pub(crate) async fn answer(session: &Session, caller: &Caller, revision: Revision) -> MethodResult {
    let mut result = Map::new();
    result.insert("supportedVersions".into(), json!(Revision::dates()));
    result.insert(
        "capabilities".into(),
        server_description::capabilities(revision, caller.is_identified()),
    );
    add_instructions(&mut result, session, caller).await;
    result.insert("ttlMs".into(), DISCOVER_TTL_MS.into());
    // Callers with other rights see other plugins.
    let scope = if caller.has_public_view() {
        "public"
    } else {
        "private"
    };
    result.insert("cacheScope".into(), scope.into());
    server_description::add_server_info(&mut result, &session.server.options().server, revision);
    Ok(result)
}
