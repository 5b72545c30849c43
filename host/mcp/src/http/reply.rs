//! Responses to a POST: one JSON object if there is only one message, otherwise a stream of events.

use std::convert::Infallible;
use std::time::Duration;

use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use futures_util::stream;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderName, HeaderValue, StatusCode};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::jsonrpc::{self, Error, INVALID_REQUEST};
use crate::outbox::{Kind, Messages, Outgoing};

/// Tells reverse proxies such as nginx not to buffer events.
pub(super) const NO_BUFFERING: (HeaderName, HeaderValue) =
    (HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));

/// How long a response may take until a peer that has closed its side gets a stream.
const SOON: Duration = Duration::from_millis(100);

/// Seconds after which there may be room for a request.
const RETRY: HeaderValue = HeaderValue::from_static("5");

pub(super) const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// Responds with the content of `messages`. `guard` is dropped when the peer has received everything or disconnects.
/// `status` maps the error code of a rejected request to an HTTP status. If the peer closes its side meanwhile, a stream is
/// begun: what is sent finds out whether it still reads.
pub(super) async fn reply(
    mut messages: Messages,
    keep_alive: Duration,
    half_closed: &CancellationToken,
    guard: Option<DropGuard>,
    status: impl Fn(i32) -> StatusCode,
) -> Response {
    let long = async {
        let closed = async {
            half_closed.cancelled().await;
            tokio::time::sleep(SOON).await;
        };
        drop(tokio::time::timeout(keep_alive, closed).await);
    };
    let first = tokio::select! {
        biased;
        first = messages.recv() => Ok(first),
        () = long => Err(()),
    };
    match first {
        Ok(Some(first)) if first.kind.responds() => single(first, status),
        // A cancelled call has no response.
        Ok(first) => events(first, messages, keep_alive, guard),
        // It takes longer: a stream can send comments to keep the connection open.
        Err(()) => events(None, messages, keep_alive, guard),
    }
}

/// Responds with the response in `messages` to a client that takes no streams. Notifications are not sent to it, and a plugin's
/// question ends its call.
pub(super) async fn without_stream(
    mut messages: Messages,
    guard: Option<DropGuard>,
    status: impl Fn(i32) -> StatusCode,
) -> Response {
    while let Some(message) = messages.recv().await {
        match message.kind {
            Kind::Answer | Kind::Refusal(_) => return single(message, status),
            Kind::Notification => {}
            Kind::Request => {
                drop(guard);
                return no_stream();
            }
        }
    }
    // A cancelled call has no response.
    StatusCode::ACCEPTED.into_response()
}

/// The response to a client that takes no streams, where only a stream can respond.
pub(super) fn no_stream() -> Response {
    let what = "the Accept header must list text/event-stream: the response to this request is a stream";
    refusal(StatusCode::NOT_ACCEPTABLE, &Error::new(INVALID_REQUEST, what))
}

/// Responds with one object.
pub(super) fn single(answer: Outgoing, status: impl Fn(i32) -> StatusCode) -> Response {
    let status = match answer.kind {
        Kind::Refusal(code) => status(code),
        Kind::Answer | Kind::Notification | Kind::Request => StatusCode::OK,
    };
    let mut response = (status, [(CONTENT_TYPE, JSON)], answer.text).into_response();
    if let Some(wait) = answer.retry_after {
        // In whole seconds, rounded up.
        response.headers_mut().insert(RETRY_AFTER, wait.as_millis().div_ceil(1000).to_string().parse().unwrap_or(JSON));
    }
    response
}

/// Responds with a stream of events; `first` is a message that has been received already.
pub(super) fn events(
    first: Option<Outgoing>,
    messages: Messages,
    keep_alive: Duration,
    guard: Option<DropGuard>,
) -> Response {
    // Proxies hold the head of a response until something of its body follows.
    let begun = first.map_or(Next::Comment, Next::Message);
    let events = stream::unfold((begun, messages, guard), |(next, mut messages, guard)| async move {
        let message = match next {
            Next::Comment => {
                return Some((Ok::<_, Infallible>(Event::default().comment("")), (Next::Queued, messages, guard)));
            }
            Next::Message(first) => first,
            Next::Queued => messages.recv().await?,
        };
        Some((Ok(event(&message)), (Next::Queued, messages, guard)))
    });
    let sse = Sse::new(events).keep_alive(KeepAlive::new().interval(keep_alive));
    ([NO_BUFFERING], sse).into_response()
}

/// What a stream sends next.
enum Next {
    /// A comment, as there is no message yet.
    Comment,
    Message(Outgoing),
    /// What is queued.
    Queued,
}

/// A message as an event. The JSON contains no line feeds.
pub(super) fn event(message: &Outgoing) -> Event {
    Event::default().event("message").data(String::from_utf8_lossy(&message.text))
}

/// Responds with an error that has passed after a while.
pub(super) fn unavailable(error: &Error) -> Response {
    let mut response = refusal(StatusCode::SERVICE_UNAVAILABLE, error);
    response.headers_mut().insert(RETRY_AFTER, RETRY);
    response
}

/// Responds with an error that does not come from a session.
pub(super) fn refusal(status: StatusCode, error: &Error) -> Response {
    (status, [(CONTENT_TYPE, JSON)], jsonrpc::error(error, true)).into_response()
}
