//! Notifies a client with a session of changes of the tool list.

use serde_json::Value;

use crate::access::Rights;
use crate::jsonrpc;
use crate::outbox::{Outbox, Outgoing};
use crate::session::Session;

/// Method of the notification.
pub(crate) const LIST_CHANGED: &str = "notifications/tools/list_changed";

/// Notifies the client of changes that it can see with `rights`, until the session ends or the client disconnects.
/// Changes that happen while a slow client reads are combined into one notification.
pub(crate) async fn tell(session: &Session, rights: &Rights, outbox: &Outbox) {
    let mut told = session.known.last(rights, session.host.view(rights));
    loop {
        let next = tokio::select! {
            () = session.life.ended.cancelled() => return,
            () = outbox.closed() => return,
            next = session.host.changed(told.listing) => next,
        };
        if next.is_none() {
            return;
        }
        let now = session.host.view(rights);
        if session.known.differs(rights, told, now) {
            let message = jsonrpc::notification(LIST_CHANGED, None::<&Value>);
            outbox.send(Outgoing::notification(message)).await;
        }
        told = now;
    }
}
