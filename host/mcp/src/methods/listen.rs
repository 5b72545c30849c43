//! `subscriptions/listen`: notifications for a client without a session.

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

/// Which subscription a message belongs to.
const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";

#[derive(Deserialize)]
struct Params {
    notifications: Filter,
}

/// What a subscriber wants to hear of. We have nothing to say of prompts and resources.
#[derive(Deserialize)]
struct Filter {
    #[serde(rename = "toolsListChanged", default)]
    tools: bool,
}

/// Opens a subscription. What changes from now on is told, however long the acknowledgement takes.
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

/// Ends a subscription that the client would have go on.
async fn conclude(session: &Session, id: &Id, revision: Revision, reply: &Outbox) {
    if session.channel == Channel::Shared {
        // One page of the specification asks for this and another for the result: together they are both.
        let cancelled = json!({"requestId": id, "reason": "the server is shutting down"});
        reply.send(notification("notifications/cancelled", &cancelled)).await;
    }
    let result = Map::from_iter([("_meta".to_owned(), json!({SUBSCRIPTION_ID: id}))]);
    reply.send(Session::result(id, result, Some(revision))).await;
}

fn notification(method: &str, params: &Value) -> Outgoing {
    Outgoing::notification(jsonrpc::notification(method, Some(params)))
}
