//! Answers to a POST: one JSON object where that is all there is to say, a stream of events otherwise.

use std::convert::Infallible;
use std::time::Duration;

use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use futures_util::stream;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderName, HeaderValue, StatusCode};
use tokio_util::sync::DropGuard;

use crate::jsonrpc::{self, Error};
use crate::outbox::{Kind, Messages, Outgoing};

/// Tells nginx and its like not to hold events back.
pub(super) const NO_BUFFERING: (HeaderName, HeaderValue) =
    (HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));

pub(super) const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// Answers with what comes out of `messages`. `guard` is dropped when the peer
/// has it all, or is gone; `status` is of an error that was not even tried.
pub(super) async fn reply(
    mut messages: Messages,
    keep_alive: Duration,
    guard: Option<DropGuard>,
    status: impl Fn(i32) -> StatusCode,
) -> Response {
    match tokio::time::timeout(keep_alive, messages.recv()).await {
        Ok(Some(first)) if first.kind != Kind::Notification => single(first, status),
        // A call that was cancelled has no answer.
        Ok(first) => events(first, messages, keep_alive, guard),
        // What takes longer is worth a sign of life.
        Err(_elapsed) => events(None, messages, keep_alive, guard),
    }
}

/// Answers with one object.
pub(super) fn single(answer: Outgoing, status: impl Fn(i32) -> StatusCode) -> Response {
    let status = match answer.kind {
        Kind::Refusal(code) => status(code),
        Kind::Answer | Kind::Notification => StatusCode::OK,
    };
    let mut response = (status, [(CONTENT_TYPE, JSON)], answer.text).into_response();
    if let Some(wait) = answer.retry_after {
        // In whole seconds, and not too early.
        response.headers_mut().insert(RETRY_AFTER, wait.as_millis().div_ceil(1000).to_string().parse().unwrap_or(JSON));
    }
    response
}

/// A stream of events, of which the first may have come already.
pub(super) fn events(
    first: Option<Outgoing>,
    messages: Messages,
    keep_alive: Duration,
    guard: Option<DropGuard>,
) -> Response {
    let messages = stream::unfold((first, messages, guard), |(first, mut messages, guard)| async move {
        let message = match first {
            Some(first) => first,
            None => messages.recv().await?,
        };
        Some((Ok::<_, Infallible>(event(&message)), (None, messages, guard)))
    });
    let sse = Sse::new(messages).keep_alive(KeepAlive::new().interval(keep_alive));
    ([NO_BUFFERING], sse).into_response()
}

/// A message as an event. JSON as we write it has no line ends.
pub(super) fn event(message: &Outgoing) -> Event {
    Event::default().event("message").data(String::from_utf8_lossy(&message.text))
}

/// An error that is not the answer of a session.
pub(super) fn refusal(status: StatusCode, error: &Error) -> Response {
    (status, [(CONTENT_TYPE, JSON)], jsonrpc::error(error, true)).into_response()
}
