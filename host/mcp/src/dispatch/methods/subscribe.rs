//! `resources/subscribe` and `resources/unsubscribe`: manage the resource subscriptions of a
//! session.

use serde::Deserialize;
use serde_json::Map;
use serde_json::value::RawValue;

use super::MethodResult;
use crate::host::caller::Caller;
use crate::host::list_source::LoadedPart;
use crate::protocol::jsonrpc::{Error, INVALID_REQUEST};
use crate::protocol::params::read;
use crate::protocol::revision::Revision;
use crate::response::call_response;
use crate::session::client_session::Session;

#[derive(Deserialize)]
struct SubscribeParams {
    uri: String,
}

/// Subscribes the session to a resource that `caller` may read. Waits for plugins that are still
/// loading at startup.
pub(crate) async fn subscribe(
    session: &Session,
    caller: &Caller,
    params: Option<&RawValue>,
    revision: Revision,
) -> MethodResult {
    let SubscribeParams { uri } = read(params)?;
    session
        .server
        .loading()
        .wait_for(LoadedPart::Everything)
        .await;
    let uri = session.server.lists().listed_uri(&uri).unwrap_or(uri);
    if caller.filter_readable([&uri].into_iter()).await.is_empty() {
        return Err(call_response::resource_not_found(&uri, revision));
    }
    session
        .subscriptions
        .add(&caller.name, &uri)
        .map_err(|refused| Error::new(INVALID_REQUEST, refused.to_string()))?;
    Ok(Map::new())
}

/// Ends the subscription, if there is one.
pub(crate) fn unsubscribe(session: &Session, params: Option<&RawValue>) -> MethodResult {
    let SubscribeParams { uri } = read(params)?;
    session.subscriptions.remove(&uri);
    if let Some(uri) = session.server.lists().listed_uri(&uri) {
        session.subscriptions.remove(&uri);
    }
    Ok(Map::new())
}
