//! `server/discover`: the supported revisions and capabilities, for clients without a session.

use serde_json::{Map, json};

use super::Answered;
use crate::revision::Revision;
use crate::session::Session;
use crate::shape;

/// How long clients may cache the result, in ms: it does not change while the process runs.
const TTL_MS: u64 = 3_600_000;

#[expect(clippy::unnecessary_wraps, reason = "methods answer alike")]
pub(crate) fn answer(session: &Session) -> Answered {
    let mut result = Map::new();
    result.insert("supportedVersions".into(), json!(Revision::dates()));
    result.insert("capabilities".into(), shape::capabilities());
    shape::add_instructions(&mut result, &session.host.options().instructions);
    result.insert("ttlMs".into(), TTL_MS.into());
    result.insert("cacheScope".into(), "public".into());
    Ok(result)
}
