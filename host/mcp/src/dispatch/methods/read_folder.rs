//! `resources/directory/read`: returns a page of the direct entries of a skill's directory.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::list_resources::ResourceList;
use crate::dispatch::paging::{ListResult, TypedPage, encode_page_blocking, read_page};
use crate::host::caller::Caller;
use crate::host::list_source::{ListSelection, LoadedPart, PageQuery};
use crate::lists::cursor;
use crate::lists::list_kind::ListKind;
use crate::protocol::jsonrpc::Error;
use crate::protocol::params::read;
use crate::protocol::revision::Revision;
use crate::response::call_response;
use crate::session::client_session::Session;

#[derive(Deserialize)]
struct ReadDirectoryParams {
    uri: String,
    cursor: Option<String>,
}

/// Returns the page. Waits for plugins that are still loading at startup.
///
/// # Errors
///
/// Returns an error if the parameters are malformed, if the directory does not exist or has no
/// entry that the caller may read, or if the cursor does not belong to this directory.
pub(crate) async fn answer(
    session: &Session,
    caller: &Caller,
    params: Option<&RawValue>,
    revision: Revision,
) -> Result<ListResult, Error> {
    let ReadDirectoryParams { uri, cursor } = read(params)?;
    session
        .server
        .loading()
        .wait_for(LoadedPart::Everything)
        .await;
    let uri = session.server.lists().listed_uri(&uri).unwrap_or(uri);
    let after = cursor
        .map(|cursor| cursor::decode_in_folder(&uri, &cursor))
        .transpose()?;
    let after = after.as_deref().filter(|after| !after.is_empty());
    let page = session.server.lists().page(&PageQuery {
        list: ListSelection::Folder(&uri),
        after,
        limit: session.server.options().page_size,
        rights: &caller.rights,
    });
    let TypedPage {
        items,
        has_more: more,
        ..
    } = page
        .and_then(read_page::<ResourceList>)
        .ok_or_else(|| call_response::not_found_at(&uri, "Not a directory"))?;
    let page = encode_page_blocking::<ResourceList>(items, more, revision, None).await?;
    let next = page.next.as_deref().map(cursor::encode_in_folder);
    Ok(ListResult::new(
        session,
        caller,
        revision,
        ListKind::Resources.result_member(),
        page.items,
        next,
    ))
}
