//! Responses to a POST: one JSON object if there is only one message, otherwise a stream of events.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use futures_util::stream;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderName, HeaderValue, StatusCode};
use tokio::time::{Instant, timeout};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::event::{self, COMMENT_EVENT, EventSource};
use super::headers::ErrorId;
use super::response_streams::ResponseStreams;
use crate::exchange::outbox::{OutboxReceiver, OutgoingKind, OutgoingMessage};
use crate::host::caller::Caller;
use crate::protocol::jsonrpc::{self, Error, INVALID_REQUEST};

/// Header that instructs reverse proxies such as nginx not to buffer events.
const NO_BUFFERING: (HeaderName, HeaderValue) = (
    HeaderName::from_static("x-accel-buffering"),
    HeaderValue::from_static("no"),
);

const EVENT_STREAM: HeaderValue = HeaderValue::from_static("text/event-stream");

const NO_CACHE: HeaderValue = HeaderValue::from_static("no-cache");

/// Timeout after which a peer that has closed its side receives a stream instead of waiting for a
/// response.
const HALF_CLOSED_TIMEOUT: Duration = Duration::from_millis(100);

/// Value of `Retry-After`, in seconds, for a request that is rejected for lack of capacity.
const RETRY_AFTER_SECONDS: HeaderValue = HeaderValue::from_static("5");

pub(super) const JSON_CONTENT_TYPE: HeaderValue = HeaderValue::from_static("application/json");

/// Parameters for resuming the stream that responds to a request.
pub(super) struct StreamResumption {
    /// The streams of its session.
    pub(super) responses: Arc<ResponseStreams>,
    /// The caller that sent the request.
    pub(super) caller: Arc<Caller>,
    /// If set, the revision has an event that opens a stream.
    pub(super) sends_opening: bool,
    /// The time at which the stream ends at the latest, so that the client polls. Only with an
    /// event that opens it.
    pub(super) ends_at: Option<Instant>,
}

/// Responds with the content of `messages`. `guard` is dropped when the peer has received
/// everything or disconnects. Without a guard, a client can have a `resumption`. `status` maps the
/// error code of a rejected request to an HTTP status. If the peer closes its side meanwhile, a
/// stream is started, because sending data detects whether the peer still reads.
pub(super) async fn respond(
    messages: OutboxReceiver,
    keep_alive: Duration,
    half_closed: &CancellationToken,
    guard: Option<DropGuard>,
    resumption: Option<StreamResumption>,
    status: impl Fn(i32) -> StatusCode,
) -> Response {
    let stream_needed = async {
        let closed = async {
            half_closed.cancelled().await;
            tokio::time::sleep(HALF_CLOSED_TIMEOUT).await;
        };
        let until = Instant::now() + keep_alive;
        let polls = resumption
            .as_ref()
            .and_then(|resumption| resumption.ends_at);
        drop(tokio::time::timeout_at(polls.map_or(until, |polls| polls.min(until)), closed).await);
    };
    let first = tokio::select! {
        biased;
        first = messages.recv() => Ok(first),
        () = stream_needed => Err(()),
    };
    match (first, resumption) {
        (Ok(Some(first)), _) if first.kind.is_response() => respond_single(first, status),
        // A cancelled call has no response.
        (Ok(None), _) => begin_stream(None, messages, guard, keep_alive),
        // The response takes longer. A stream can send comments to keep the connection open.
        (first, None) => begin_stream(first.unwrap_or(None), messages, guard, keep_alive),
        (
            first,
            Some(StreamResumption {
                responses,
                caller,
                sends_opening: opens,
                ends_at: closes,
            }),
        ) => {
            let first = first.unwrap_or(None);
            let has_first = first.is_some();
            match responses.open(caller, first, messages, closes) {
                Ok(reader) => {
                    let opening = opens
                        .then(|| reader.opening())
                        .or((!has_first).then_some(COMMENT_EVENT));
                    event_stream(opening, reader, keep_alive)
                }
                Err((first, messages)) => begin_stream(first, messages, guard, keep_alive),
            }
        }
    }
}

/// Responds with the response in `messages` to a client that accepts no streams. Notifications are
/// dropped, and a plugin's question ends its call.
pub(super) async fn respond_without_stream(
    messages: OutboxReceiver,
    guard: Option<DropGuard>,
    id: ErrorId,
    status: impl Fn(i32) -> StatusCode,
) -> Response {
    while let Some(message) = messages.recv().await {
        match message.kind {
            OutgoingKind::Response | OutgoingKind::Rejection(_) => {
                return respond_single(message, status);
            }
            OutgoingKind::Notification => {}
            OutgoingKind::Request => {
                drop(guard);
                return stream_required(id);
            }
        }
    }
    // A cancelled call has no response.
    StatusCode::ACCEPTED.into_response()
}

/// Returns the error for a client that accepts no streams, where only a stream can respond.
pub(super) fn stream_required(id: ErrorId) -> Response {
    let what = "the response to this request is a stream, and the Accept header does not allow text/event-stream: send \
                Accept: application/json, text/event-stream";
    error_response(
        StatusCode::NOT_ACCEPTABLE,
        &Error::new(INVALID_REQUEST, what),
        id,
    )
}

/// Responds with one object.
pub(super) fn respond_single(
    answer: OutgoingMessage,
    status: impl Fn(i32) -> StatusCode,
) -> Response {
    let status = match answer.kind {
        OutgoingKind::Rejection(code) => status(code),
        OutgoingKind::Response | OutgoingKind::Notification | OutgoingKind::Request => {
            StatusCode::OK
        }
    };
    let mut response = (status, [(CONTENT_TYPE, JSON_CONTENT_TYPE)], answer.text).into_response();
    if let Some(wait) = answer.retry_after {
        // Whole seconds, rounded up.
        response.headers_mut().insert(
            RETRY_AFTER,
            wait.as_millis()
                .div_ceil(1000)
                .to_string()
                .parse()
                .unwrap_or(RETRY_AFTER_SECONDS),
        );
    }
    response
}

/// Responds with a stream that ends with its connection. `first` is a message that was received
/// already.
fn begin_stream(
    first: Option<OutgoingMessage>,
    messages: OutboxReceiver,
    guard: Option<DropGuard>,
    keep_alive: Duration,
) -> Response {
    let opening = first.map_or(COMMENT_EVENT, |first| {
        event::message_event(None, &first.text)
    });
    event_stream(
        Some(opening),
        MessageStream {
            messages,
            _guard: guard,
        },
        keep_alive,
    )
}

/// Responds with a stream of the events of `source`, after `opening`. A comment follows whenever
/// there is no event for a while. Proxies hold back the head of a response until a part of its body
/// follows, so without an opening there must be an event.
pub(super) fn event_stream(
    opening: Option<Bytes>,
    source: impl EventSource,
    keep_alive: Duration,
) -> Response {
    let frames = stream::unfold((opening, source), move |(opening, mut source)| async move {
        let frame = match opening {
            Some(opening) => opening,
            None => match timeout(keep_alive, source.next()).await {
                Ok(next) => next?,
                Err(_elapsed) => COMMENT_EVENT,
            },
        };
        Some((Ok::<_, Infallible>(frame), (None, source)))
    });
    let head = [
        NO_BUFFERING,
        (CONTENT_TYPE, EVENT_STREAM),
        (CACHE_CONTROL, NO_CACHE),
    ];
    (head, Body::from_stream(frames)).into_response()
}

/// The messages of a stream that cannot be resumed.
struct MessageStream {
    messages: OutboxReceiver,
    _guard: Option<DropGuard>,
}

impl EventSource for MessageStream {
    async fn next(&mut self) -> Option<Bytes> {
        let message = self.messages.recv().await?;
        Some(event::message_event(None, &message.text))
    }
}

/// Responds with a temporary error.
pub(super) fn unavailable_response(error: &Error, id: ErrorId) -> Response {
    let mut response = error_response(StatusCode::SERVICE_UNAVAILABLE, error, id);
    response
        .headers_mut()
        .insert(RETRY_AFTER, RETRY_AFTER_SECONDS);
    response
}

/// Responds with an error that does not come from a session. If the error belongs to no request,
/// `id` selects the form of its id.
pub(super) fn error_response(status: StatusCode, error: &Error, id: ErrorId) -> Response {
    (
        status,
        [(CONTENT_TYPE, JSON_CONTENT_TYPE)],
        jsonrpc::error(error, id == ErrorId::Null),
    )
        .into_response()
}
