//! `subscriptions/listen`: notifications for clients without a session.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::caller::Caller;
use crate::changes::LIST_CHANGED;
use crate::jsonrpc::{self, Error, INVALID_REQUEST, Id, Request};
use crate::outbox::{Outbox, Outgoing};
use crate::params::read;
use crate::revision::Revision;
use crate::rules::Rules;
use crate::session::{Channel, Session};

/// Key of the subscription's id in `_meta`.
const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";

#[derive(Deserialize)]
struct Params {
    notifications: Filter,
}

/// The notifications that a subscriber requests. The server has none about prompts and resources.
#[derive(Deserialize)]
struct Filter {
    #[serde(rename = "toolsListChanged", default)]
    tools: bool,
}

/// Opens a subscription. Changes from now on that `caller` can see are reported, even if the acknowledgement is delayed.
///
/// # Errors
///
/// The request is malformed, its id is in use, or the client has too many requests open.
pub(crate) fn open(
    session: &Arc<Session>,
    caller: &Caller,
    request: &Request<'_>,
    rules: &Rules,
    reply: &Outbox,
) -> Result<(), Error> {
    let Params { notifications: filter } = read(request.params)?;
    if !session.has_room() {
        return Err(Error::new(INVALID_REQUEST, "this client has too many open requests"));
    }
    let known = session.host.view(&caller.rights);
    let registered = session.in_flight.begin(&request.id, session.life.ended.child_token());
    let request =
        registered.ok_or_else(|| Error::new(INVALID_REQUEST, "a request with this id is already in progress"))?;
    let (told, rights, reply, revision) = (Arc::clone(session), caller.rights.clone(), reply.clone(), rules.revision);
    session.spawn(async move {
        let (session, id) = (told, &request.id);
        let granted = if filter.tools { json!({"toolsListChanged": true}) } else { json!({}) };
        let acknowledged = json!({"notifications": granted, "_meta": {SUBSCRIPTION_ID: id}});
        reply.send(notification("notifications/subscriptions/acknowledged", &acknowledged)).await;
        let news = json!({"_meta": {SUBSCRIPTION_ID: id}});
        let changes = async {
            let mut told = known;
            while filter.tools && session.host.changed(told.listing).await.is_some() {
                let now = session.host.view(&rights);
                if now.digest != told.digest {
                    reply.send(notification(LIST_CHANGED, &news)).await;
                }
                told = now;
            }
            std::future::pending::<()>().await;
        };
        let ends_here = tokio::select! {
            biased;
            () = request.cancelled.cancelled() => false,
            () = session.life.closing.cancelled() => true,
            () = reply.closed() => false,
            () = changes => false,
        };
        if session.in_flight.finish(&request) && ends_here {
            conclude(&session, id, revision, &reply).await;
        }
    });
    Ok(())
}

/// Ends a subscription from the server's side.
async fn conclude(session: &Session, id: &Id, revision: Revision, reply: &Outbox) {
    if session.channel == Channel::Shared {
        // One page of the specification requires this notification and another one the result: send both.
        let cancelled = json!({"requestId": id, "reason": "the server is shutting down"});
        reply.send(notification("notifications/cancelled", &cancelled)).await;
    }
    let result = Map::from_iter([("_meta".to_owned(), json!({SUBSCRIPTION_ID: id}))]);
    reply.send(Session::result(id, result, Some(revision))).await;
}

fn notification(method: &str, params: &Value) -> Outgoing {
    Outgoing::notification(jsonrpc::notification(method, Some(params)))
}
