//! `resources/directory/read`: a page of what is directly in a folder of a skill.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::list_resources::Resources;
use crate::caller::Caller;
use crate::cursor;
use crate::host::Page;
use crate::jsonrpc::Error;
use crate::list::List;
use crate::outcome;
use crate::paging::{Listed, write_elsewhere};
use crate::params::read;
use crate::revision::Revision;
use crate::session::Session;

#[derive(Deserialize)]
struct Params {
    uri: String,
    cursor: Option<String>,
}

/// The page. Waits for plugins that are still loading at startup.
///
/// # Errors
///
/// The parameters are malformed, there is no such folder with anything that the caller may read, or the cursor is not one of
/// this folder.
pub(crate) async fn answer(
    session: &Session,
    caller: &Caller,
    params: Option<&RawValue>,
    revision: Revision,
) -> Result<Listed, Error> {
    let Params { uri, cursor } = read(params)?;
    session.host.complete().await;
    let uri = session.host.spelling(&uri).unwrap_or(uri);
    let after = cursor.map(|cursor| cursor::decode_in_folder(&uri, &cursor)).transpose()?;
    let after = after.as_deref().filter(|after| !after.is_empty());
    let host = &session.host;
    let page = host.folder(&uri, after, host.options().page_size, &caller.rights);
    let Page { items, more, .. } = page.ok_or_else(|| outcome::nothing_at(&uri, "Not a directory"))?;
    let page = write_elsewhere::<Resources>(items, more, revision, None).await?;
    let next = page.next.as_deref().map(cursor::encode_in_folder);
    Ok(Listed::new(session, caller, revision, List::Resources.member(), page.items, next))
}
