//! `notifications/initialized`: the client is ready for notifications.

use std::sync::Arc;

use crate::exchange::outbox::Outbox;
use crate::session::change_notifications;
use crate::session::client_session::{Session, SessionChannel};

pub(crate) fn receive(session: &Arc<Session>, reply: &Outbox) {
    let first = session.negotiated.send_if_modified(|negotiated| {
        let first = negotiated.revision.is_some() && !negotiated.initialized;
        negotiated.initialized = negotiated.revision.is_some();
        first
    });
    if first && session.channel == SessionChannel::Shared {
        let session = Arc::clone(session);
        let reply = reply.clone();
        tokio::spawn(async move {
            change_notifications::notify_session(&session, &session.opener.rights, &reply).await;
        });
    }
}
