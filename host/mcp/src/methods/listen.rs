//! `subscriptions/listen`: notifications for clients without a session.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value, json};

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

/// Opens a subscription. Changes from now on are reported, even if the acknowledgement is delayed.
///
/// # Errors
///
/// The request is malformed, its id is in use, or the client has too many requests open.
pub(crate) fn open(session: &Arc<Session>, request: &Request<'_>, rules: &Rules, reply: &Outbox) -> Result<(), Error> {
    let Params { notifications: filter } = read(request.params)?;
    if !session.has_room() {
        return Err(Error::new(INVALID_REQUEST, "this client has too many open requests"));
    }
    let known = session.host.listing();
    let cancelled = session.life.ended.child_token();
    if !session.begin(&request.id, cancelled.clone()) {
        return Err(Error::new(INVALID_REQUEST, "a request with this id is already in progress"));
    }
    let (told, reply, id, revision) = (Arc::clone(session), reply.clone(), request.id.clone(), rules.revision);
    session.spawn(async move {
        let session = told;
        let granted = if filter.tools { json!({"toolsListChanged": true}) } else { json!({}) };
        let acknowledged = json!({"notifications": granted, "_meta": {SUBSCRIPTION_ID: id}});
        reply.send(notification("notifications/subscriptions/acknowledged", &acknowledged)).await;
        let news = json!({"_meta": {SUBSCRIPTION_ID: id}});
        let changes = async {
            let mut told = Some(known).filter(|_| filter.tools);
            while let Some(listing) = told {
                told = session.host.changed(listing).await;
                if told.is_some() {
                    reply.send(notification(LIST_CHANGED, &news)).await;
                }
            }
            std::future::pending::<()>().await;
        };
        let ends_here = tokio::select! {
            biased;
            () = cancelled.cancelled() => false,
            () = session.life.closing.cancelled() => true,
            () = reply.closed() => false,
            () = changes => false,
        };
        if session.finish(&id).is_some() && ends_here {
            conclude(&session, &id, revision, &reply).await;
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
