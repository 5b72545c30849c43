//! `notifications/cancelled`: the client cancels a request.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::protocol::jsonrpc::{RequestId, truncate_quote};
use crate::protocol::params::read;
use crate::session::client_session::Session;

#[derive(Deserialize)]
struct CancelledParams {
    #[serde(rename = "requestId")]
    request_id: RequestId,
    reason: Option<String>,
}

pub(crate) fn receive(session: &Session, params: Option<&RawValue>) {
    match read::<CancelledParams>(params) {
        Ok(cancelled) => {
            // An unknown id belongs to a request that has ended, and is ignored.
            if session.in_flight.cancel(&cancelled.request_id) {
                tracing::debug!(id = ?cancelled.request_id, reason = cancelled.reason.as_deref().map(truncate_quote), "request cancelled by the client");
            }
        }
        Err(error) => tracing::debug!(
            error = error.message,
            "ignored a malformed notifications/cancelled"
        ),
    }
}
