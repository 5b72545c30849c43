//! Notifies a client with a session of changes: of the lists, and of resources that it subscribed to.

use serde_json::{Value, json};

use crate::access::Rights;
use crate::jsonrpc;
use crate::outbox::{Outbox, Outgoing};
use crate::session::Session;
use crate::updates::Subscriber;

/// Method of the notification of a resource that changed.
const UPDATED: &str = "notifications/resources/updated";

/// Notifies the client of changes that it can see with `rights`, until the session ends or the client disconnects.
/// Changes that happen while a slow client reads are combined into one notification.
pub(crate) async fn tell(session: &Session, rights: &Rights, outbox: &Outbox) {
    let mut told = session.known.last(rights, session.host.view(rights));
    let lists = async {
        while session.host.changed(told.listing).await.is_some() {
            let now = session.host.view(rights);
            while let Some(news) = session.known.news(rights, told, now) {
                let message = jsonrpc::notification(news.method(), None::<&Value>);
                let Some(capacity) = outbox.reserve(message.len()).await else { return };
                // The client may have asked for the list while it did not read.
                if session.known.tell(rights, news, told, now) {
                    capacity.send(Outgoing::notification(message));
                }
            }
            told = now;
        }
        // The lists do not change any more. Resources may.
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = session.life.ended.cancelled() => {}
        () = outbox.closed() => {}
        () = lists => {}
        () = updates(&session.subscriptions, rights, None, outbox) => {}
    }
}

/// Notifies a subscriber of the resources that it named, as far as `rights` allow, until its client disconnects. `meta` is
/// added to each notification. What could not be queued stays marked, for the next stream.
pub(crate) async fn updates(subscriber: &Subscriber, rights: &Rights, meta: Option<&Value>, outbox: &Outbox) {
    loop {
        let uri = subscriber.changed(|uri| rights.allow(uri)).await;
        let params = match meta {
            Some(meta) => json!({"uri": &*uri, "_meta": meta}),
            None => json!({"uri": &*uri}),
        };
        let message = jsonrpc::notification(UPDATED, Some(&params));
        let Some(capacity) = outbox.reserve(message.len()).await else { return };
        if subscriber.take(&uri) {
            capacity.send(Outgoing::notification(message));
        }
    }
}
