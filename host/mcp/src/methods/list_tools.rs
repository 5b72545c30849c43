//! `tools/list`: a page of the tools that the caller may use.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use toolbay_model::{Json, Tool};

use crate::access::Rights;
use crate::caller::Caller;
use crate::host;
use crate::jsonrpc::Error;
use crate::listings::{Key, Page};
use crate::outcome::internal;
use crate::params::read;
use crate::revision::Revision;
use crate::session::Session;
use crate::view::View;
use crate::{cursor, shape};

/// How long clients may cache the list, in ms: the folder can change at any time.
const TTL_MS: u64 = 0;

/// Bytes of a page: what exceeds them is on the next one, except a tool that is larger alone.
const PAGE: usize = 4 << 20;

#[derive(Default, Deserialize)]
struct Params {
    cursor: Option<String>,
}

/// The result of `tools/list`.
#[derive(Debug, Serialize)]
pub(crate) struct Listed {
    tools: Json,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

pub(crate) async fn answer(
    session: &Session,
    caller: &Caller,
    params: Option<&RawValue>,
    revision: Revision,
) -> Result<Listed, Error> {
    let params: Params = read(params)?;
    let after = params.cursor.as_deref().map(cursor::decode).transpose()?;
    session.host.complete().await;
    let (page, view) = page(session, caller, after.as_deref(), revision).await?;
    let mut rest = Map::new();
    if revision.features().caching_hints {
        rest.insert("ttlMs".into(), TTL_MS.into());
        // Other callers may see other lists.
        let shared = matches!(caller.rights, Rights::All);
        rest.insert("cacheScope".into(), if shared { "public" } else { "private" }.into());
    }
    if revision.features().sessions {
        session.known.listed(&caller.rights, view, after.is_none() && page.next.is_none());
    }
    if let Some(next) = &page.next {
        rest.insert("nextCursor".into(), cursor::encode(next).into());
    }
    shape::complete(&mut rest, revision);
    Ok(Listed { tools: page.tools.clone(), rest })
}

/// The page after the tool `after`, and the list that it is part of.
async fn page(
    session: &Session,
    caller: &Caller,
    after: Option<&str>,
    revision: Revision,
) -> Result<(Arc<Page>, View), Error> {
    let (host, listings) = (&session.host, session.host.listings());
    let find = || {
        let view = host.view(&caller.rights);
        listings.find(&Key::new(view, revision, after)).map(|page| (page, view))
    };
    if let Some(found) = find() {
        return Ok(found);
    }
    let _writing = listings.write().await;
    if let Some(found) = find() {
        return Ok(found);
    }
    let host::Page { tools, more, view } = host.page(after, host.options().page_size, &caller.rights);
    // Megabytes of text: not on a thread of the protocol.
    let page = tokio::task::spawn_blocking(move || Arc::new(write(&tools, more, revision))).await;
    let page = page.map_err(|error| internal(&format!("writing the list of tools failed: {error}")))?;
    // A client can make up any number of other cursors.
    if after.is_none_or(|name| host.tool(name).is_some()) {
        listings.keep(view.listing, Key::new(view, revision, after), Arc::clone(&page));
    }
    Ok((page, view))
}

/// Writes a page of these tools, as far as they fit. `more` says whether others come after them.
fn write(tools: &[Arc<Tool>], more: bool, revision: Revision) -> Page {
    let mut room = PAGE;
    let fit = |tool: &&Arc<Tool>| room.checked_sub(tool.size()).map(|left| room = left).is_some();
    let fitting = tools.iter().take_while(fit).count().max(1);
    let (page, rest) = tools.split_at_checked(fitting).unwrap_or((tools, &[]));
    let items: Vec<_> = page.iter().map(|tool| shape::tool(tool, revision)).collect();
    let last = page.last().filter(|_| more || !rest.is_empty());
    Page { tools: Json::written(&items), next: last.map(|tool| tool.name.clone()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stub;

    fn tools(page: &Page) -> Vec<String> {
        let tools: Vec<Value> = serde_json::from_str(page.tools.get()).unwrap();
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn a_page_has_as_many_tools_as_fit() {
        let large = |name: &str, bytes| {
            Arc::new(Tool { description: Some("x".repeat(bytes)), ..Tool::clone(&stub::tool(name)) })
        };
        let all = [large("a", PAGE / 2), large("b", PAGE / 4), large("c", PAGE / 2), large("d", 1)];
        let page = write(&all, false, Revision::NEWEST);
        assert_eq!((tools(&page), page.next), (vec!["a".into(), "b".into()], Some("b".into())));
        let page = write(&all[2..], false, Revision::NEWEST);
        assert_eq!((tools(&page), page.next), (vec!["c".into(), "d".into()], None));
        let page = write(&all[2..], true, Revision::NEWEST);
        assert_eq!(page.next, Some("d".into()));
        let page = write(&[large("a", 2 * PAGE), large("b", 1)], false, Revision::NEWEST);
        assert_eq!((tools(&page), page.next), (vec!["a".into()], Some("a".into())), "alone");
        let page = write(&[], false, Revision::NEWEST);
        assert_eq!((page.tools.get(), page.next), ("[]", None));
    }
}
