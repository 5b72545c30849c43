//! `tools/list`: a page of the tools that the caller may use.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::Answered;
use crate::access::Rights;
use crate::caller::Caller;
use crate::params::read;
use crate::revision::Revision;
use crate::session::Session;
use crate::{cursor, shape};

/// How long clients may cache the list, in ms: the folder can change at any time.
const TTL_MS: u64 = 0;

#[derive(Default, Deserialize)]
struct Params {
    cursor: Option<String>,
}

pub(crate) async fn answer(
    session: &Session,
    caller: &Caller,
    params: Option<&RawValue>,
    revision: Revision,
) -> Answered {
    let params: Params = read(params)?;
    let after = params.cursor.as_deref().map(cursor::decode).transpose()?;
    session.host.complete().await;
    let page_size = session.host.options().page_size;
    let page = session.host.page(after.as_deref(), page_size, &caller.rights);
    let next = if page.more { page.tools.last().map(|tool| cursor::encode(&tool.name)) } else { None };
    let tools: Vec<Value> = page.tools.iter().map(|tool| shape::tool(tool, revision)).collect();
    let mut result = Map::new();
    result.insert("tools".into(), tools.into());
    if revision.features().caching_hints {
        result.insert("ttlMs".into(), TTL_MS.into());
        // Other callers may see other lists.
        let shared = matches!(caller.rights, Rights::All);
        result.insert("cacheScope".into(), if shared { "public" } else { "private" }.into());
    }
    if revision.features().sessions {
        session.known.listed(&caller.rights, page.view, after.is_none() && next.is_none());
    }
    if let Some(next) = next {
        result.insert("nextCursor".into(), next.into());
    }
    Ok(result)
}
