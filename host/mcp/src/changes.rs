//! Changes of the list of tools, told to a client with a session.

use std::sync::atomic::Ordering;

use serde_json::Value;

use crate::jsonrpc;
use crate::outbox::{Outbox, Outgoing};
use crate::session::Session;

/// The notification.
pub(crate) const LIST_CHANGED: &str = "notifications/tools/list_changed";

/// Tells the client about changes, until the session or the client is gone. A burst is one change already; while a slow
/// client reads, later ones join.
pub(crate) async fn tell(session: &Session, outbox: &Outbox) {
    let mut told = session.known_listing.load(Ordering::SeqCst);
    loop {
        let next = tokio::select! {
            () = session.life.ended.cancelled() => return,
            () = outbox.closed() => return,
            next = session.host.changed(told) => next,
        };
        told = match next {
            Some(listing) => listing,
            None => return,
        };
        // It may have listed meanwhile, for the first time.
        if told > session.known_listing.fetch_max(told, Ordering::SeqCst) {
            let message = jsonrpc::notification(LIST_CHANGED, None::<&Value>);
            outbox.send(Outgoing::notification(message)).await;
        }
    }
}
