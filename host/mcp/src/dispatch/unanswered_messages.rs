//! Messages that get no response: notifications, and responses to requests of the server.

use std::sync::Arc;

use serde_json::value::RawValue;

use crate::dispatch::methods::{cancelled, initialized};
use crate::exchange::outbox::Outbox;
use crate::host::caller::Caller;
use crate::protocol::jsonrpc::{Error, RequestId, truncate_quote};
use crate::session::client_session::Session;

/// Delivers the response to a request of the server.
pub(super) fn handle_response(
    session: &Session,
    caller: &Caller,
    id: Option<&RequestId>,
    outcome: Result<&RawValue, Error>,
) {
    if !session
        .pending
        .respond(id, outcome, &session.request_quota, &caller.name)
    {
        tracing::debug!("ignored a response to a request that is not waiting for one");
    }
}

/// Handles a notification. Unknown ones are ignored.
pub(super) fn handle_notification(
    session: &Arc<Session>,
    method: &str,
    params: Option<&RawValue>,
    reply: &Outbox,
) {
    match method {
        "notifications/initialized" => initialized::receive(session, reply),
        "notifications/cancelled" => cancelled::receive(session, params),
        _ => tracing::debug!(
            method = truncate_quote(method),
            "ignored an unknown notification"
        ),
    }
}
