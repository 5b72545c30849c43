//! Changes of the list of tools: who is told, and how.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::jsonrpc::{self, Error, INVALID_REQUEST, Id, Request};
use super::outbox::{Outbox, Outgoing};
use super::revision::Revision;
use super::session::{Channel, Session, read};

/// Which subscription a message belongs to.
const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";

/// What may go on for one client at once. Calls have a smaller bound of their own.
const TASKS: usize = 4096;

#[derive(Deserialize)]
struct ListenParams {
    notifications: Filter,
}

/// What a subscriber wants to hear of. We have nothing to say of prompts and resources.
#[derive(Deserialize)]
struct Filter {
    #[serde(rename = "toolsListChanged", default)]
    tools: bool,
}

impl Session {
    /// Tells the peer of a session about changes, until the session or the
    /// peer is gone. Bursts are one change already; while a slow peer reads,
    /// later ones join.
    pub(super) async fn tell_changes(&self, outbox: &Outbox) {
        let mut told = self.known_listing.load(Ordering::SeqCst);
        loop {
            let next = tokio::select! {
                () = self.ended.cancelled() => return,
                () = outbox.closed() => return,
                next = self.next_change(told) => next,
            };
            told = match next {
                Some(listing) => listing,
                None => return,
            };
            // It may have listed meanwhile, for the first time.
            if told > self.known_listing.fetch_max(told, Ordering::SeqCst) {
                let message = jsonrpc::notification("notifications/tools/list_changed", None::<&Value>);
                outbox.send(Outgoing::notification(message)).await;
            }
        }
    }

    /// Opens a subscription. What changes from now on is told, however long the acknowledgement takes.
    pub(super) fn listen(self: &Arc<Self>, request: &Request<'_>, reply: &Outbox) -> Result<(), Error> {
        let ListenParams { notifications: filter } = read(request.params)?;
        if self.tasks.len() >= TASKS {
            return Err(Error::new(INVALID_REQUEST, "too many requests of this client are open"));
        }
        let known = self.service.catalog().snapshot().listing;
        let cancelled = self.ended.child_token();
        if !self.begin(&request.id, cancelled.clone()) {
            return Err(Error::new(INVALID_REQUEST, "a request with this id is in flight"));
        }
        let (session, reply, id) = (Arc::clone(self), reply.clone(), request.id.clone());
        tokio::spawn(self.tasks.track_future(async move {
            let granted = if filter.tools { json!({"toolsListChanged": true}) } else { json!({}) };
            let acknowledged = json!({"notifications": granted, "_meta": {SUBSCRIPTION_ID: id}});
            reply.send(notification("notifications/subscriptions/acknowledged", &acknowledged)).await;
            let news = json!({"_meta": {SUBSCRIPTION_ID: id}});
            let changes = async {
                let mut told = Some(known).filter(|_| filter.tools);
                while let Some(listing) = told {
                    told = session.next_change(listing).await;
                    if told.is_some() {
                        reply.send(notification("notifications/tools/list_changed", &news)).await;
                    }
                }
                std::future::pending::<()>().await;
            };
            let ends_here = tokio::select! {
                biased;
                () = cancelled.cancelled() => false,
                () = session.closing.cancelled() => true,
                () = reply.closed() => false,
                () = changes => false,
            };
            if session.finish(&id).is_some() && ends_here {
                session.conclude(&id, &reply).await;
            }
        }));
        Ok(())
    }

    /// Ends a subscription that the client would have go on.
    async fn conclude(&self, id: &Id, reply: &Outbox) {
        if self.channel == Channel::Shared {
            // One page of the specification asks for this and another for the result: together they are both.
            let cancelled = json!({"requestId": id, "reason": "the server ends"});
            reply.send(notification("notifications/cancelled", &cancelled)).await;
        }
        let result = Map::from_iter([("_meta".to_owned(), json!({SUBSCRIPTION_ID: id}))]);
        reply.send(Self::result(id, result, Some(Revision::LATEST))).await;
    }

    /// The number of the listing after the one that was `told`; `None` when nobody publishes any more.
    async fn next_change(&self, told: u64) -> Option<u64> {
        let snapshot = self.service.catalog().wait_for(|snapshot| snapshot.listing > told).await;
        Some(snapshot.listing).filter(|listing| *listing > told)
    }
}

fn notification(method: &str, params: &Value) -> Outgoing {
    Outgoing::notification(jsonrpc::notification(method, Some(params)))
}
