//! Notifies a client with a session of changes of the tool list.

use std::sync::atomic::Ordering;

use serde_json::Value;

use crate::jsonrpc;
use crate::outbox::{Outbox, Outgoing};
use crate::session::Session;

/// Method of the notification.
pub(crate) const LIST_CHANGED: &str = "notifications/tools/list_changed";

/// Notifies the client of changes until the session ends or the client disconnects. Changes that happen while a slow
/// client reads are combined into one notification.
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
        // The client may have listed the tools in the meantime, for the first time.
        if told > session.known_listing.fetch_max(told, Ordering::SeqCst) {
            let message = jsonrpc::notification(LIST_CHANGED, None::<&Value>);
            outbox.send(Outgoing::notification(message)).await;
        }
    }
}
