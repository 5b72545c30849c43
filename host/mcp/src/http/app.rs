//! State that every request shares.

use std::sync::Arc;

use axum::response::{IntoResponse as _, Response};
use http::StatusCode;

use super::auth::Gate;
use super::guard::Guard;
use super::options::Options;
use super::reply;
use super::sessions::Sessions;
use super::streams::Streams;
use crate::host::Host;
use crate::jsonrpc::{Error, INVALID_REQUEST};
use crate::session::Life;

/// State that every request shares.
pub(super) struct App {
    pub(super) host: Arc<dyn Host>,
    pub(super) options: Options,
    pub(super) gate: Gate,
    pub(super) guard: Guard,
    pub(super) sessions: Sessions,
    pub(super) streams: Streams,
    /// The life of the server; no session outlives it.
    pub(super) life: Life,
}

/// Reads the body of a request, with the same size limit as a line over stdio.
pub(super) async fn body(app: &App, body: axum::body::Body) -> Result<axum::body::Bytes, Response> {
    let request = app.host.options().request;
    let limit = usize::try_from(request.as_u64()).unwrap_or(usize::MAX);
    let read = tokio::time::timeout(app.options.idle, axum::body::to_bytes(body, limit)).await;
    match read {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(error)) if is_too_long(&error) => {
            let what =
                format!("the message is larger than {} (to allow more, raise server.request)", request.display().iec());
            let error = Error::new(INVALID_REQUEST, what);
            Err(reply::refusal(StatusCode::PAYLOAD_TOO_LARGE, &error))
        }
        Ok(Err(_)) => Err(StatusCode::BAD_REQUEST.into_response()),
        Err(_elapsed) => Err(StatusCode::REQUEST_TIMEOUT.into_response()),
    }
}

fn is_too_long(error: &axum::Error) -> bool {
    std::error::Error::source(error).is_some_and(<dyn std::error::Error>::is::<http_body_util::LengthLimitError>)
}
