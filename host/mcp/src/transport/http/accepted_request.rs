//! A request whose body has been accepted, and the HTTP response that its messages become.

use std::sync::Arc;

use axum::response::Response;
use http::StatusCode;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::headers::ErrorId;
use super::options::HttpOptions;
use super::post_response::{StreamResumption, respond, respond_without_stream, stream_required};
use super::sessions::HttpSession;
use crate::exchange::outbox;
use crate::host::caller::Caller;
use crate::protocol::jsonrpc::{self, INVALID_REQUEST, METHOD_NOT_FOUND, PARSE_ERROR};

/// A request whose body has been accepted.
pub(super) enum AcceptedRequest {
    /// The response is complete.
    Done(Response),
    /// The response consists of messages that are still to come.
    Waiting {
        messages: outbox::OutboxReceiver,
        guard: Option<DropGuard>,
        /// The session that the request belongs to, if the session outlives the request, and the
        /// caller that sent it.
        session: Option<(Arc<HttpSession>, Arc<Caller>)>,
        statuses: StatusMap,
        /// If set, the request ends only when the client ends it.
        is_stream: bool,
    },
}

/// The forms of a response that a client accepts.
#[derive(Clone, Copy)]
pub(super) enum ResponseForm {
    /// JSON, or a stream of events.
    Any,
    /// Only JSON. An error that says so has this id.
    Json(ErrorId),
}

/// Mapping from error codes of rejected requests to HTTP statuses.
#[derive(Clone, Copy)]
pub(super) enum StatusMap {
    /// For sessions.
    Legacy,
    /// For stateless requests. If `not_found` is set, an unknown method is 404.
    Stateless { not_found: bool },
}

impl StatusMap {
    pub(super) fn status(self, code: i32) -> StatusCode {
        match self {
            Self::Legacy => legacy_status(code),
            Self::Stateless { not_found } => match code {
                METHOD_NOT_FOUND if not_found => StatusCode::NOT_FOUND,
                METHOD_NOT_FOUND | jsonrpc::INVALID_PARAMS => StatusCode::OK,
                _ => StatusCode::BAD_REQUEST,
            },
        }
    }
}

impl AcceptedRequest {
    /// Returns the response, as soon as it begins. The request was received at `received`.
    pub(super) async fn respond(
        self,
        options: &HttpOptions,
        received: Instant,
        half_closed: &CancellationToken,
        form: ResponseForm,
    ) -> Response {
        match self {
            Self::Done(response) => response,
            Self::Waiting {
                messages,
                guard,
                statuses,
                is_stream,
                ..
            } if let ResponseForm::Json(id) = form => {
                if is_stream {
                    return stream_required(id);
                }
                respond_without_stream(messages, guard, id, |code| statuses.status(code)).await
            }
            Self::Waiting {
                messages,
                guard,
                session,
                statuses,
                ..
            } => {
                let resumption = session.map(|(session, caller)| {
                    stream_resumption(&session, caller, options, received)
                });
                let status = |code| statuses.status(code);
                respond(
                    messages,
                    options.stream_keep_alive,
                    half_closed,
                    guard,
                    resumption,
                    status,
                )
                .await
            }
        }
    }
}

/// Returns how the client of this session can resume the stream that responds to a request received
/// at `received`.
pub(super) fn stream_resumption(
    session: &HttpSession,
    caller: Arc<Caller>,
    options: &HttpOptions,
    received: Instant,
) -> StreamResumption {
    let opens = session
        .session
        .negotiated
        .borrow()
        .revision
        .is_some_and(|revision| revision.features().polling);
    let opens = opens && !options.resume.is_zero();
    let closes = options
        .poll_after
        .filter(|_| opens)
        .map(|after| received + after);
    StreamResumption {
        responses: Arc::clone(&session.responses),
        caller,
        sends_opening: opens,
        ends_at: closes,
    }
}

/// Returns the HTTP status of an error with this code, for sessions.
pub(super) fn legacy_status(code: i32) -> StatusCode {
    if matches!(code, PARSE_ERROR | INVALID_REQUEST) {
        StatusCode::BAD_REQUEST
    } else {
        StatusCode::OK
    }
}
