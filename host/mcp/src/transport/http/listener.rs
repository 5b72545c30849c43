//! Accepts connections, limits their number, time and memory, and shuts them down gracefully.

use std::convert::Infallible;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::response::{IntoResponse as _, Response};
use http::header::{CONNECTION, RETRY_AFTER};
use http::{HeaderValue, Request, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};
use toolbay_background::QuotaPortion;
use toolbay_tls::ReloadingTls;
use tower_service::Service as _;

use super::connection_places::{ConnectionOwner, ConnectionPlaces};
use super::connection_scheduler::FairScheduler;
use super::connection_socket::{self, ConnectionSocket};
use super::connection_stream::ConnectionStream;
use super::headers;
use super::lingering_close::{self, TrackedBody, UnreadBody};
use super::options::HttpOptions;
use super::overflow_connections::{
    ADMISSION_TIMEOUT, OVERFLOW_HEAD_TIMEOUT, OverflowConnections, OverflowSlot,
};
use super::peer::{HttpPeer, PeerSource};
use super::sockets::{SocketListener, SocketStream};
use super::trusted_proxies::{TrustedProxy, client_source};
use crate::session::client_session::ShutdownTokens;

/// Pause after a failed accept, such as too many open files: another connection must close first.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

/// Timeout for writing the responses to stopped requests.
const FINAL_WRITE_TIMEOUT: Duration = Duration::from_secs(1);

/// Maximum length of the head of a request, in bytes.
const MAX_HEAD_BYTES: usize = 64 << 10;

/// Maximum bytes that a connection buffers before it reads more, or for writing. hyper rejects an
/// incomplete head of this length, or more than 100 headers, without an explanation. One more read
/// can complete a longer head, which [`serve_request`] rejects.
const MAX_BUFFER_BYTES: usize = MAX_HEAD_BYTES;

/// Paths that are also served on connections beyond the limit.
pub(super) const PROBE_PATHS: [&str; 2] = ["/healthz", "/readyz"];

/// Number of connections to accept before yielding to other tasks.
const MAX_ACCEPTS_PER_TURN: usize = 4;

/// Value of `Retry-After`, in seconds, for a connection that gets no place.
const RETRY_AFTER_SECONDS: HeaderValue = HeaderValue::from_static("5");

/// Response to a request without TLS on a port with TLS.
const PLAIN_HTTP_RESPONSE: &[u8] = b"HTTP/1.1 400 Bad Request\r\n\
    Content-Type: text/plain; charset=utf-8\r\n\
    Content-Length: 61\r\n\
    Connection: close\r\n\r\n\
    this port accepts only TLS: begin the URL with https instead\n";

/// The state that all connections share.
struct ListenerState {
    router: Router,
    places: ConnectionPlaces,
    scheduler: Arc<FairScheduler>,
    overflow: Arc<OverflowConnections>,
    idle: Duration,
    write_timeout: Duration,
    tls: Option<Arc<ReloadingTls>>,
    trusted_proxies: Vec<TrustedProxy>,
    stop: CancellationToken,
}

/// Serves until `life.closing`; running requests may then continue for `grace`. Each connection
/// takes one of `places`.
pub(super) async fn serve(
    listener: SocketListener,
    router: Router,
    places: ConnectionPlaces,
    options: &HttpOptions,
    life: &ShutdownTokens,
    grace: Duration,
) -> io::Result<()> {
    let connections = TaskTracker::new();
    let ended = CancellationToken::new();
    let stop = &life.closing;
    let shared = Arc::new(ListenerState {
        router,
        places,
        scheduler: Arc::default(),
        overflow: Arc::default(),
        idle: options.idle_timeout,
        write_timeout: options.write_timeout,
        trusted_proxies: options.trusted_proxies.clone(),
        tls: options.tls.clone(),
        stop: stop.clone(),
    });
    listener.limit_receive_buffers()?;
    let turns = Arc::clone(&shared.scheduler);
    let _passes = AbortOnDropHandle::new(tokio::spawn(async move { turns.run_passes().await }));
    let mut at_once = 0;
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => break,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, source)) => {
                let network: Arc<str> = source.network().into();
                let serving =
                    serve_connection(stream, source, Arc::clone(&network), Arc::clone(&shared));
                let serving = shared.scheduler.schedule(&network, serving);
                let ended = ended.clone();
                connections.spawn(async move {
                    // Dropped at the end of the grace period, regardless of its state.
                    ended.run_until_cancelled(serving).await;
                });
                at_once += 1;
                if at_once == MAX_ACCEPTS_PER_TURN {
                    at_once = 0;
                    tokio::task::yield_now().await;
                }
            }
            // The peer disconnected before it was accepted.
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset
                ) => {}
            Err(error) => {
                tracing::warn!(%error, "failed to accept a connection");
                tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
            }
        }
    }
    drop(listener);
    connections.close();
    if tokio::time::timeout(grace, connections.wait())
        .await
        .is_err()
    {
        tracing::warn!(
            "stopped requests that were still running when the grace period ended (server.grace_period)"
        );
        life.stopped.cancel();
        // Waits only as long as it takes to write the responses.
        if tokio::time::timeout(FINAL_WRITE_TIMEOUT, connections.wait())
            .await
            .is_err()
        {
            ended.cancel();
            connections.wait().await;
        }
    }
    Ok(())
}

/// The admission state of a connection: it has a place, or waits in the overflow until it has one.
enum ConnectionAdmission {
    Place(#[expect(dead_code, reason = "held for its Drop")] QuotaPortion),
    Overflow(Arc<OverflowSlot>),
}

async fn serve_connection(
    stream: SocketStream,
    source: PeerSource,
    network: Arc<str>,
    shared: Arc<ListenerState>,
) {
    let owner = shared.places.owner(&network, || stream.ends());
    let (standing, head, taken) = if let Ok(place) = shared.places.try_reserve(&owner) {
        (
            ConnectionAdmission::Place(place),
            shared.idle,
            CancellationToken::new(),
        )
    } else {
        let seat = Arc::new(shared.overflow.acquire(&owner.name));
        let taken = seat.evicted.clone();
        (
            ConnectionAdmission::Overflow(seat),
            shared.idle.min(OVERFLOW_HEAD_TIMEOUT),
            taken,
        )
    };
    let standing = Arc::new(Mutex::new(standing));
    let peer = HttpPeer {
        source,
        half_closed: CancellationToken::new(),
    };
    let half_closed = peer.half_closed.clone();
    let stream = Arc::new(stream);
    let pace = Arc::new(shared.scheduler.read_pace(&network));
    let wire = ConnectionSocket::new(Arc::clone(&stream), Arc::clone(&pace), shared.write_timeout);
    let link = match &shared.tls {
        None => ConnectionStream::Plain(wire),
        Some(tls) => {
            // The handshake uses the same place and timeout as the head of a request.
            let handshake = async {
                if is_plain_http(stream.peek_byte().await?) {
                    return Ok(None);
                }
                tls.accept(wire).await.map(Some)
            };
            let secured = tokio::select! {
                secured = tokio::time::timeout(head, handshake) => secured,
                () = wait_for_eviction(&standing, &taken) => return,
                () = shared.stop.cancelled() => return,
            };
            match secured {
                Ok(Ok(Some(secured))) => ConnectionStream::Tls(Box::new(secured)),
                Ok(Ok(None)) => {
                    tracing::debug!(peer = %source, "a client does not use TLS");
                    // Fits into the empty buffer of the socket.
                    drop(stream.try_write(PLAIN_HTTP_RESPONSE));
                    tokio::select! {
                        () = lingering_close::drain(&stream, &pace) => {}
                        () = wait_for_eviction(&standing, &taken) => {}
                        () = shared.stop.cancelled() => {}
                    }
                    return;
                }
                Ok(Err(error)) => {
                    tracing::debug!(peer = %source, %error, "a connection ended in its handshake");
                    return;
                }
                Err(_elapsed) => return,
            }
        }
    };
    let io = TokioIo::new(link);
    let serving = Arc::clone(&shared);
    let at = Arc::clone(&standing);
    let unread = UnreadBody::default();
    let noted = unread.clone();
    let answer = service_fn(move |mut request: Request<Incoming>| {
        let mut peer = peer.clone();
        peer.source = client_source(&serving.trusted_proxies, peer.source, request.headers());
        request.extensions_mut().insert(peer);
        let request = request.map(|body| noted.track(body));
        let shared = Arc::clone(&serving);
        let standing = Arc::clone(&at);
        let owner = owner.clone();
        async move {
            Ok::<Response<Body>, Infallible>(
                serve_request(&shared, &standing, &owner, request).await,
            )
        }
    });
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(head)
        .max_buf_size(MAX_BUFFER_BYTES)
        // A peer that has sent its request and closed its side still receives the response.
        .half_close(true)
        .serve_connection(io, answer);
    let mut serving = pin!(serving);
    let leaving = async {
        connection_socket::wait_half_closed(&stream).await?;
        half_closed.cancel();
        connection_socket::wait_closed(&stream).await;
        Ok::<_, io::Error>(())
    };
    let mut leaving = pin!(leaving);
    let served = tokio::select! {
        served = serving.as_mut() => served,
        // The peer is gone, so its pending request is cancelled.
        _ = leaving.as_mut() => return,
        () = wait_for_eviction(&standing, &taken) => {
            serving.as_mut().graceful_shutdown();
            drop(tokio::time::timeout(FINAL_WRITE_TIMEOUT, serving).await);
            return;
        }
        () = shared.stop.cancelled() => {
            // Finishes the current response, then closes the connection.
            serving.as_mut().graceful_shutdown();
            tokio::select! {
                served = serving => served,
                _ = leaving => return,
            }
        }
    };
    let has_more = match served {
        Ok(()) => unread.may_have_more(),
        Err(error) => {
            tracing::debug!(peer = %source, %error, "a connection ended");
            // hyper has responded to a head that is too long; the rest of the head may still
            // arrive.
            error.is_parse_too_large()
        }
    };
    if has_more {
        tokio::select! {
            () = lingering_close::drain(&stream, &pace) => {}
            () = wait_for_eviction(&standing, &taken) => {}
            () = shared.stop.cancelled() => {}
        }
    }
}

/// Returns whether a connection begins with an HTTP request: the name of a method. A TLS handshake
/// begins with the byte 22.
fn is_plain_http(first: Option<u8>) -> bool {
    first.is_some_and(|byte| byte.is_ascii_uppercase())
}

/// Waits until a connection in the overflow has lost its slot. Never returns for a connection that
/// has obtained a place meanwhile.
async fn wait_for_eviction(standing: &Mutex<ConnectionAdmission>, taken: &CancellationToken) {
    taken.cancelled().await;
    if matches!(*lock_standing(standing), ConnectionAdmission::Place(_)) {
        std::future::pending::<()>().await;
    }
}

/// Handles one request as soon as the connection has a place. Health probes need no place. A
/// request whose head is too long is rejected before that.
async fn serve_request(
    shared: &ListenerState,
    standing: &Mutex<ConnectionAdmission>,
    owner: &ConnectionOwner,
    request: Request<TrackedBody>,
) -> Response {
    if headers::head_length(request.method(), request.uri(), request.headers()) > MAX_HEAD_BYTES {
        return head_too_long();
    }
    let seat = match &*lock_standing(standing) {
        ConnectionAdmission::Place(_) => None,
        ConnectionAdmission::Overflow(seat) => Some(Arc::clone(seat)),
    };
    if let Some(seat) = seat
        && !PROBE_PATHS.contains(&request.uri().path())
    {
        let place = tokio::select! {
            biased;
            place = shared.places.reserve(owner) => place,
            () = seat.evicted.cancelled() => return too_many_connections(),
            () = shared.stop.cancelled() => return too_many_connections(),
            () = tokio::time::sleep(ADMISSION_TIMEOUT) => return too_many_connections(),
        };
        // Frees the overflow slot.
        *lock_standing(standing) = ConnectionAdmission::Place(place);
    }
    shared
        .router
        .clone()
        .call(request)
        .await
        .unwrap_or_else(|never| match never {})
}

// Held for a few instructions and never across an await.
fn lock_standing(
    standing: &Mutex<ConnectionAdmission>,
) -> parking_lot::MutexGuard<'_, ConnectionAdmission> {
    standing.lock()
}

/// Returns the response to a request with a head that is too long.
fn head_too_long() -> Response {
    let text = format!(
        "the request line and the headers are longer than {} KiB\n",
        MAX_HEAD_BYTES >> 10
    );
    (StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, text).into_response()
}

/// Returns the response on a connection that gets no place.
fn too_many_connections() -> Response {
    let headers = [
        (CONNECTION, HeaderValue::from_static("close")),
        (RETRY_AFTER, RETRY_AFTER_SECONDS),
    ];
    (
        StatusCode::SERVICE_UNAVAILABLE,
        headers,
        "too many connections are open; retry later\n",
    )
        .into_response()
}
