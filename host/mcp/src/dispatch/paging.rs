//! Implementation of the list methods: returns a page of a list for the caller's rights and
//! revision.

use std::sync::Arc;

use serde::ser::SerializeMap as _;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use toolbay_model::{JsonText, SchemaForm};

use crate::host::caller::Caller;
use crate::host::list_source::{ListItems, ListPage, ListSelection, PageQuery};
use crate::host::mcp_server::McpServer;
use crate::lists::cursor;
use crate::lists::list_kind::ListKind;
use crate::lists::list_state::CallerView;
use crate::lists::page_cache::{CachedPage, PageKey};
use crate::protocol::jsonrpc::Error;
use crate::protocol::params::read;
use crate::protocol::revision::Revision;
use crate::response::call_response::internal_error;
use crate::session::client_session::Session;

/// Time that clients may cache a list, in ms. The plugin folder can change at any time.
const LIST_TTL_MS: u64 = 0;

/// Maximum size of a page, in bytes. Further items go to the next page. A larger item gets its own
/// page.
const MAX_PAGE_BYTES: usize = 4 << 20;

/// A list that can be returned in pages.
pub(crate) trait PagedList {
    /// The kind of the list.
    const LIST: ListKind;
    /// Type of the items.
    type Entry: Send + Sync + 'static;

    /// Returns the items of a page of this list; `None` if they belong to another list.
    fn items(items: ListItems) -> Option<Vec<Arc<Self::Entry>>>;

    /// Returns the name or URI by which the list is ordered.
    fn name(entry: &Self::Entry) -> &str;

    /// Returns the approximate size of the item's JSON, in bytes.
    fn size(entry: &Self::Entry) -> usize;

    /// Returns the item restricted to the JSON Schema keywords that all model APIs support.
    fn portable(_server: &McpServer, entry: Arc<Self::Entry>) -> Arc<Self::Entry> {
        entry
    }

    /// Returns the item's JSON.
    fn to_serializable(entry: &Self::Entry, revision: Revision) -> impl Serialize;
}

/// A page whose items have the type of their list.
pub(crate) struct TypedPage<T> {
    /// The items, in the order of their names or URIs.
    pub(crate) items: Vec<Arc<T>>,
    /// True if more items follow these.
    pub(crate) has_more: bool,
    /// The view of the lists that the page is part of.
    view: CallerView,
}

#[derive(Default, Deserialize)]
struct PagingParams {
    cursor: Option<String>,
}

/// The result of a method whose main member is JSON that is already encoded, such as a list method.
#[derive(Debug)]
pub(crate) struct ListResult {
    /// Name of the member that contains `items`.
    member: &'static str,
    items: JsonText,
    rest: Map<String, Value>,
}

impl ListResult {
    /// Creates a result with `items` as the member `member`. `next` is the cursor if there are more
    /// items.
    pub(crate) fn new(
        session: &Session,
        caller: &Caller,
        revision: Revision,
        member: &'static str,
        items: JsonText,
        next: Option<String>,
    ) -> Self {
        let mut rest = Map::new();
        if revision.features().caching_hints {
            rest.insert("ttlMs".into(), LIST_TTL_MS.into());
            // Other callers may see other lists.
            let scope = if caller.has_public_view() {
                "public"
            } else {
                "private"
            };
            rest.insert("cacheScope".into(), scope.into());
        }
        if let Some(next) = next {
            rest.insert("nextCursor".into(), next.into());
        }
        session.add_common_members(&mut rest, revision);
        Self {
            member,
            items,
            rest,
        }
    }
}

impl Serialize for ListResult {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut members = serializer.serialize_map(Some(self.rest.len() + 1))?;
        members.serialize_entry(self.member, &self.items)?;
        for (name, value) in &self.rest {
            members.serialize_entry(name, value)?;
        }
        members.end()
    }
}

/// Returns the result of a list method. Waits for plugins that are still loading at startup.
///
/// # Errors
///
/// Returns an error if the parameters are malformed, or if the cursor does not belong to this list.
pub(crate) async fn list_result<P: PagedList>(
    session: &Session,
    caller: &Caller,
    params: Option<&RawValue>,
    revision: Revision,
) -> Result<ListResult, Error> {
    let params: PagingParams = read(params)?;
    let after = params
        .cursor
        .map(|cursor| cursor::decode(P::LIST, &cursor))
        .transpose()?;
    let after = after.filter(|after| !after.is_empty());
    session.wait_for_plugins().await;
    let (page, view) = page::<P>(session, caller, after.as_deref(), revision).await?;
    if revision.features().sessions {
        session.client_lists.record_listed(
            &caller.rights,
            P::LIST,
            view,
            after.is_none() && page.next.is_none(),
        );
    }
    let next = page.next.as_ref().map(|next| cursor::encode(P::LIST, next));
    Ok(ListResult::new(
        session,
        caller,
        revision,
        P::LIST.result_member(),
        page.items.clone(),
        next,
    ))
}

/// Returns the page after `after`, and the view of the lists that it belongs to.
async fn page<P: PagedList>(
    session: &Session,
    caller: &Caller,
    after: Option<&str>,
    revision: Revision,
) -> Result<(Arc<CachedPage>, CallerView), Error> {
    let server = &session.server;
    let page_cache = server.page_cache();
    let options = server.options();
    let schemas = caller.preferences.schemas.unwrap_or(options.schemas);
    let form = (revision, schemas);
    let find_cached = || {
        let view = server.lists().view(&caller.rights);
        page_cache
            .get(&PageKey::new(P::LIST, view, form, after))
            .map(|page| (page, view))
    };
    if let Some(cached) = find_cached() {
        return Ok(cached);
    }
    let _encoding_guard = page_cache.lock_encoding().await;
    if let Some(cached) = find_cached() {
        return Ok(cached);
    }
    let query = PageQuery {
        list: selection(P::LIST),
        after,
        limit: options.page_size,
        rights: &caller.rights,
    };
    let page = server.lists().page(&query);
    let TypedPage {
        items,
        has_more: more,
        view,
    } = page.and_then(read_page::<P>).ok_or_else(|| {
        internal_error(&format!(
            "the host has no list of {}",
            P::LIST.result_member()
        ))
    })?;
    let portable = (schemas == SchemaForm::Portable).then(|| Arc::clone(server));
    let page = Arc::new(encode_page_blocking::<P>(items, more, revision, portable).await?);
    page_cache.insert(
        view.version,
        PageKey::new(P::LIST, view, form, after),
        Arc::clone(&page),
    );
    Ok((page, view))
}

/// Returns the selection that queries this list.
fn selection(list: ListKind) -> ListSelection<'static> {
    match list {
        ListKind::Tools => ListSelection::Tools,
        ListKind::Prompts => ListSelection::Prompts,
        ListKind::Resources => ListSelection::Resources,
        ListKind::Templates => ListSelection::Templates,
        ListKind::Skills => ListSelection::Skills,
    }
}

/// Returns the page with typed items; `None` if they belong to another list.
pub(crate) fn read_page<P: PagedList>(page: ListPage) -> Option<TypedPage<P::Entry>> {
    let ListPage {
        items,
        has_more: more,
        view,
    } = page;
    let items = P::items(items)?;
    Some(TypedPage {
        items,
        has_more: more,
        view,
    })
}

/// Encodes a page of these items, as far as they fit, on a blocking thread: it may be megabytes of
/// text. If `portable` is given, it converts the items.
pub(crate) async fn encode_page_blocking<P: PagedList>(
    items: Vec<Arc<P::Entry>>,
    has_more: bool,
    revision: Revision,
    portable: Option<Arc<McpServer>>,
) -> Result<CachedPage, Error> {
    let page = tokio::task::spawn_blocking(move || match portable {
        Some(server) => {
            let items: Vec<_> = items
                .into_iter()
                .map(|item| P::portable(&server, item))
                .collect();
            encode_page::<P>(&items, has_more, revision)
        }
        None => encode_page::<P>(&items, has_more, revision),
    })
    .await;
    page.map_err(|error| internal_error(&format!("writing a list failed: {error}")))
}

/// Encodes a page of these items, as far as they fit. `has_more` is true if others follow them.
fn encode_page<P: PagedList>(
    items: &[Arc<P::Entry>],
    has_more: bool,
    revision: Revision,
) -> CachedPage {
    let mut remaining_bytes = MAX_PAGE_BYTES;
    let fits = |entry: &&Arc<P::Entry>| {
        remaining_bytes
            .checked_sub(P::size(entry))
            .map(|left| remaining_bytes = left)
            .is_some()
    };
    let fitting_count = items.iter().take_while(fits).count().max(1);
    let (page, rest) = items
        .split_at_checked(fitting_count)
        .unwrap_or((items, &[]));
    let serializable_items: Vec<_> = page
        .iter()
        .map(|entry| P::to_serializable(entry, revision))
        .collect();
    let last = page.last().filter(|_| has_more || !rest.is_empty());
    CachedPage {
        items: JsonText::from_serializable(&serializable_items),
        next: last.map(|entry| P::name(entry).to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use toolbay_model::Tool;

    use super::*;
    use crate::testing::stub_items;

    struct Tools;

    impl PagedList for Tools {
        const LIST: ListKind = ListKind::Tools;
        type Entry = Tool;

        fn items(items: ListItems) -> Option<Vec<Arc<Tool>>> {
            match items {
                ListItems::Tools(items) => Some(items),
                _ => None,
            }
        }

        fn name(tool: &Tool) -> &str {
            &tool.name
        }

        fn size(tool: &Tool) -> usize {
            tool.size()
        }

        fn to_serializable(tool: &Tool, _revision: Revision) -> impl Serialize {
            serde_json::json!({"name": tool.name})
        }
    }

    fn names(page: &CachedPage) -> Vec<String> {
        let tools: Vec<Value> = serde_json::from_str(page.items.get()).unwrap();
        tools
            .iter()
            .map(|tool| tool["name"].as_str().unwrap().to_owned())
            .collect()
    }

    #[test]
    fn a_page_has_as_many_items_as_fit() {
        let write = |tools: &[Arc<Tool>], more| encode_page::<Tools>(tools, more, Revision::NEWEST);
        let large = |name: &str, bytes| {
            Arc::new(Tool {
                description: Some("x".repeat(bytes)),
                ..Tool::clone(&stub_items::tool(name))
            })
        };
        let all = [
            large("a", MAX_PAGE_BYTES / 2),
            large("b", MAX_PAGE_BYTES / 4),
            large("c", MAX_PAGE_BYTES / 2),
            large("d", 1),
        ];
        let page = write(&all, false);
        assert_eq!(
            (names(&page), page.next),
            (vec!["a".into(), "b".into()], Some("b".into()))
        );
        let page = write(&all[2..], false);
        assert_eq!(
            (names(&page), page.next),
            (vec!["c".into(), "d".into()], None)
        );
        let page = write(&all[2..], true);
        assert_eq!(page.next, Some("d".into()));
        let page = write(&[large("a", 2 * MAX_PAGE_BYTES), large("b", 1)], false);
        assert_eq!(
            (names(&page), page.next),
            (vec!["a".into()], Some("a".into())),
            "alone"
        );
        let page = write(&[], false);
        assert_eq!((page.items.get(), page.next), ("[]", None));
    }
}
