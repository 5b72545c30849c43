//! Notifies a client that has a session of changes: to the lists, and to resources that it
//! subscribed to.

use std::time::Duration;

use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::time::Instant;

use crate::exchange::outbox::{Outbox, OutgoingMessage};
use crate::exchange::resource_subscriptions::UpdateSubscriber;
use crate::lists::access_rights::CallerRights;
use crate::protocol::jsonrpc;
use crate::session::client_session::Session;

/// Method of the notification that a resource has changed.
const RESOURCE_UPDATED_METHOD: &str = "notifications/resources/updated";

/// Minimum time between two notifications that lists have changed. An editor that saves a file
/// twenty times in a second changes a list twenty times, and for each notification a client
/// requests the list and its model reads it again.
const MIN_NOTIFICATION_INTERVAL: Duration = Duration::from_secs(1);

/// Limits how often a client is notified of changed lists: immediately at first, and then at most
/// once per [`MIN_NOTIFICATION_INTERVAL`].
#[derive(Debug)]
pub(crate) struct NotificationPace(Option<Instant>);

impl NotificationPace {
    pub(crate) fn new() -> Self {
        Self(None)
    }

    /// Waits until the client may be notified.
    pub(crate) async fn wait(&self) {
        if let Some(last) = self.0 {
            tokio::time::sleep_until(last + MIN_NOTIFICATION_INTERVAL).await;
        }
    }

    /// Records that the client was notified.
    pub(crate) fn mark_notified(&mut self) {
        self.0 = Some(Instant::now());
    }
}

/// Notifies the client of changes that are visible with `rights`, until the session ends or the
/// client disconnects. Changes that happen while a slow client reads, or within a second after a
/// notification, are combined into one.
pub(crate) async fn notify_session(session: &Session, rights: &CallerRights, outbox: &Outbox) {
    let mut notified_view = session
        .client_lists
        .last_view(rights, session.server.lists().view(rights));
    let lists = async {
        let mut pace = NotificationPace::new();
        while session
            .server
            .lists()
            .wait_for_change(notified_view.version)
            .await
            .is_some()
        {
            pace.wait().await;
            let current_view = session.server.lists().view(rights);
            while let Some(change) =
                session
                    .client_lists
                    .next_change(rights, notified_view, current_view)
            {
                let message = jsonrpc::notification(change.method(), None::<&Value>);
                let Some(permit) = outbox.reserve(message.len()).await else {
                    return;
                };
                // The client may have requested the list before it read the notification.
                if session
                    .client_lists
                    .record_notified(rights, change, notified_view, current_view)
                {
                    permit.send(OutgoingMessage::notification(message));
                    pace.mark_notified();
                }
            }
            notified_view = current_view;
        }
        // The lists can no longer change, but resources can.
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = session.shutdown.ended.cancelled() => {}
        () = outbox.closed() => {}
        () = lists => {}
        () = notify_resource_updates(&session.subscriptions, rights, None, outbox) => {}
    }
}

/// The parameters of the notification that a resource has changed.
#[derive(Serialize)]
struct UpdatedResource<'a> {
    uri: &'a str,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    meta: Option<&'a RawValue>,
}

/// Notifies a subscriber of changes to the resources that it named, within `rights`, until its
/// client disconnects. `meta` is added to each notification. A change that could not be queued
/// stays marked for the next stream.
pub(crate) async fn notify_resource_updates(
    subscriber: &UpdateSubscriber,
    rights: &CallerRights,
    meta: Option<&RawValue>,
    outbox: &Outbox,
) {
    loop {
        let uri = subscriber.next_change(|uri| rights.allow(uri)).await;
        let params = UpdatedResource { uri: &uri, meta };
        let message = jsonrpc::notification(RESOURCE_UPDATED_METHOD, Some(&params));
        let Some(permit) = outbox.reserve(message.len()).await else {
            return;
        };
        if subscriber.clear_mark(&uri) {
            permit.send(OutgoingMessage::notification(message));
        }
    }
}
