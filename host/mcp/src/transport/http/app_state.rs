//! State that every request shares.

use std::sync::Arc;

use arc_swap::ArcSwap;
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use bytesize::ByteSize;
use http::StatusCode;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::body::Body as _;
use toolbay_background::{QuotaPortion, RejectionLog, SharedQuota};

use super::address::ListenAddress;
use super::auth::AuthGate;
use super::auth_denial::AuthDenial;
use super::body_workers::BodyWorkers;
use super::headers::ErrorId;
use super::metrics_cache::MetricsCache;
use super::options::{AccessSettings, HttpOptions};
use super::origin_check::OriginGuard;
use super::peer::PeerSource;
use super::post_response;
use super::sessions::SessionTable;
use super::sse_streams::SseStreams;
use crate::host::caller::Caller;
use crate::host::interface::TransportTraffic;
use crate::host::mcp_server::McpServer;
use crate::plugin_request::params_memory::busy_rejection;
use crate::protocol::jsonrpc::{Error, INVALID_REQUEST};
use crate::session::client_session::ShutdownTokens;

/// State that every request shares.
pub(super) struct HttpState {
    pub(super) server: Arc<McpServer>,
    pub(super) address: ListenAddress,
    pub(super) options: HttpOptions,
    pub(super) gate: AuthGate,
    /// Replaced when the configuration changes.
    pub(super) guard: ArcSwap<OriginGuard>,
    pub(super) sessions: SessionTable,
    pub(super) streams: SseStreams,
    /// The bytes of requests that are being handled.
    pub(super) intake: Arc<SharedQuota>,
    /// Threads for long bodies.
    pub(super) body_workers: BodyWorkers,
    /// Open requests of callers.
    pub(super) requests: Arc<SharedQuota>,
    /// Open connections.
    pub(super) connections: Arc<SharedQuota>,
    /// The metrics that operators read.
    pub(super) metrics_cache: MetricsCache,
    /// The rejected requests, for the log.
    pub(super) rejections: Arc<RejectionLog>,
    /// The lifetime of the server. No session outlives it.
    pub(super) life: ShutdownTokens,
}

impl HttpState {
    /// Replaces the access settings. Sessions and streams that were opened with a removed token
    /// end.
    pub(super) fn apply_access_settings(&self, settings: &AccessSettings) {
        self.guard.store(Arc::new(OriginGuard::new(
            &settings.allowed_hosts,
            &settings.allowed_origins,
            &self.address,
        )));
        self.gate.set_has_hosts(!settings.allowed_hosts.is_empty());
        self.gate.set_tokens(&settings.tokens, self.server.calls());
    }

    /// Returns the response to a request that is rejected as unauthorized, and logs the rejection.
    pub(super) fn reject(&self, peer: PeerSource, denied: &AuthDenial) -> Response {
        if self.rejections.needs_line(&peer.network(), denied.reason()) {
            tracing::info!(%peer, "request rejected: {denied}");
        }
        self.gate.challenge(denied)
    }

    /// Returns whether sessions are available. Otherwise each request of a revision with sessions
    /// is independent.
    pub(super) fn has_sessions(&self) -> bool {
        self.options.sessions > 0
    }

    /// Returns the number of open connections, requests and sessions.
    pub(super) fn traffic(&self) -> TransportTraffic {
        let connections = self.connections.total_used();
        let requests = self.requests.total_used();
        TransportTraffic {
            connections,
            requests,
            sessions: self.sessions.count(),
        }
    }
}

/// The body of a request, and its reservation in the bytes of all requests.
pub(super) struct RequestBody {
    pub(super) bytes: Bytes,
    _held: QuotaPortion,
}

/// Reads the body of a request of `caller`, with the same size limit as a line over stdio.
pub(super) async fn read_body(
    app: &HttpState,
    caller: &Caller,
    body: axum::body::Body,
    id: ErrorId,
) -> Result<RequestBody, Response> {
    match tokio::time::timeout(
        app.options.idle_timeout,
        collect_body(app, caller, body, id),
    )
    .await
    {
        Ok(read) => read,
        Err(_elapsed) => Err(StatusCode::REQUEST_TIMEOUT.into_response()),
    }
}

async fn collect_body(
    app: &HttpState,
    caller: &Caller,
    body: axum::body::Body,
    id: ErrorId,
) -> Result<RequestBody, Response> {
    let request = app.server.options().max_message_size;
    let limit = usize::try_from(request.as_u64()).unwrap_or(usize::MAX);
    let refused = |exhausted| {
        post_response::unavailable_response(
            &Error::new(
                INVALID_REQUEST,
                busy_rejection(exhausted).reason.to_string(),
            ),
            id,
        )
    };
    let mut held = app.intake.try_reserve(&caller.name, 0).map_err(refused)?;
    // A body that is announced as too large is not read: otherwise a client could make the server
    // waste this work repeatedly.
    let announced = body
        .size_hint()
        .upper()
        .map(|length| usize::try_from(length).unwrap_or(usize::MAX));
    if announced.is_some_and(|length| length > limit) {
        return Err(too_large(request, id));
    }
    let most = announced.unwrap_or(limit);
    if announced.is_some() {
        held.check_available(most).map_err(refused)?;
    }
    let mut body = Limited::new(body, limit);
    let mut bytes = Vec::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame
            .map_err(|error| body_error(&*error, request, id))?
            .into_data()
        else {
            continue;
        };
        // Only received bytes count, not announced ones: a client cannot reserve memory by an
        // announcement.
        if bytes.capacity() - bytes.len() < data.len() {
            let more = (bytes.len() + data.len()).max(2 * bytes.len()).min(most) - bytes.len();
            held.grow((bytes.len() + more).saturating_sub(bytes.capacity()))
                .map_err(refused)?;
            // Exact capacity, because additional capacity would not be counted.
            bytes.reserve_exact(more);
        }
        bytes.extend_from_slice(&data);
    }
    Ok(RequestBody {
        bytes: bytes.into(),
        _held: held,
    })
}

fn body_error(error: &(dyn std::error::Error + 'static), limit: ByteSize, id: ErrorId) -> Response {
    if error.is::<LengthLimitError>() {
        too_large(limit, id)
    } else {
        StatusCode::BAD_REQUEST.into_response()
    }
}

fn too_large(limit: ByteSize, id: ErrorId) -> Response {
    let what = format!(
        "the message is larger than {} (to allow more, raise server.request_size)",
        limit.display().iec()
    );
    post_response::error_response(
        StatusCode::PAYLOAD_TOO_LARGE,
        &Error::new(INVALID_REQUEST, what),
        id,
    )
}
