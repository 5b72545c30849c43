//! `notifications/initialized`: the client is ready for notifications.

use std::sync::Arc;

use crate::exchange::outbox::Outbox;
use crate::session::change_notifications;
use crate::session::client_session::{Session, SessionChannel};

pub(crate) fn receive(session: &Arc<Session>, reply: &Outbox) {
    let is_first = session.negotiated.send_if_modified(|negotiated| {
        let was_uninitialized = negotiated.revision.is_some() && !negotiated.is_initialized;
        negotiated.is_initialized = negotiated.revision.is_some();
        was_uninitialized
    });
    if is_first && session.channel == SessionChannel::Shared {
        let session = Arc::clone(session);
        let reply = reply.clone();
        tokio::spawn(async move {
            change_notifications::notify_session(&session, &session.opener.rights, &reply).await;
        });
    }
}
