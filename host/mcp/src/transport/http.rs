//! MCP over HTTP: one endpoint for sessions and for stateless requests, and the layers around it.
//!
//! A request passes `check_origin` (Host and Origin), then the gate of `auth`, then the `endpoint`,
//! which brings it to the session that answers it: `session_request` finds or creates one of the
//! `sessions`, and a `stateless_request` has its own, which ends with it. `accepted_request` and
//! `post_response` turn the messages of a session into a response.

mod accepted_request;
mod access_settings;
mod address;
mod app_state;
mod auth;
mod auth_denial;
mod body_workers;
mod connection_places;
mod connection_scheduler;
mod connection_socket;
mod connection_stream;
mod credential_validity;
mod decimal;
mod endpoint;
mod event;
mod event_log;
mod header_arguments;
mod headers;
mod issuer_keys;
mod lingering_close;
mod listener;
mod metrics_cache;
mod metrics_endpoint;
mod oauth;
mod options;
mod origin_check;
mod overflow_connections;
mod peer;
mod post_response;
mod rejection_log;
mod response_body;
mod response_stream;
mod response_streams;
mod session_request;
mod sessions;
mod sockets;
mod sse;
mod sse_streams;
mod standalone_messages;
mod stateless_request;
mod trusted_proxies;

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use arc_swap::ArcSwap;
use axum::Router;
use axum::body::Body;
use axum::extract::{Extension, Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use http::header::{AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderValue, Method, StatusCode, Uri};
use hyper::body::Body as _;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use toolbay_background::SharedQuota;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::cors::{AllowHeaders, AllowOrigin, CorsLayer};
use tower_http::sensitive_headers::SetSensitiveRequestHeadersLayer;
use tower_http::trace::TraceLayer;

pub use self::access_settings::SharedAccess;
pub use self::address::{InvalidAddress, ListenAddress};
use self::app_state::HttpState;
use self::auth::AuthGate;
pub use self::auth::token_caller_name;
use self::body_workers::BodyWorkers;
use self::connection_places::ConnectionPlaces;
use self::headers::ErrorId;
use self::metrics_cache::MetricsCache;
use self::oauth::TokenVerifier;
pub use self::options::{AccessSettings, AuthorizationServer, BearerToken, HttpOptions, OAuth};
use self::origin_check::OriginGuard;
use self::peer::HttpPeer;
pub use self::peer::network_of;
use self::post_response::JSON_CONTENT_TYPE;
use self::rejection_log::new_rejection_log;
use self::sessions::SessionTable;
pub use self::sockets::SocketListener;
use self::sse_streams::SseStreams;
pub use self::trusted_proxies::TrustedProxy;
use crate::host::mcp_server::McpServer;
use crate::protocol::jsonrpc::{Error, INVALID_REQUEST};
use crate::session::client_session::ShutdownTokens;

/// Path of the endpoint.
pub const MCP_PATH: &str = "/mcp";

/// Path of the endpoint as many clients write it.
const MCP_PATH_WITH_SLASH: &str = "/mcp/";

/// Time for which a browser caches the result of a preflight request. Chromium accepts no more.
const PREFLIGHT_MAX_AGE: Duration = Duration::from_hours(2);

/// Path of the metrics.
pub const METRICS_PATH: &str = "/metrics";

/// Checks that the keys of all token issuers can be read.
///
/// # Errors
///
/// A file cannot be read, is not a JWK set or has no keys.
pub fn check_issuer_keys(oauth: &OAuth) -> Result<(), String> {
    TokenVerifier::new(oauth.clone()).map(drop)
}

/// Serves HTTP clients on `listener` until `stop` is cancelled, and then for at most
/// `server.grace_period`. The settings in `access` replace the corresponding options.
///
/// # Errors
///
/// A file that the configuration names cannot be read, or the listener has no address.
pub async fn serve(
    server: Arc<McpServer>,
    options: HttpOptions,
    listener: impl Into<SocketListener>,
    access: &SharedAccess,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    let listener = listener.into();
    let address = listener.address()?;
    let life = ShutdownTokens {
        closing: stop.clone(),
        ..ShutdownTokens::default()
    };
    let app = Arc::new(HttpState {
        gate: AuthGate::new(&options, &address, server.calls()).map_err(anyhow::Error::msg)?,
        guard: ArcSwap::from_pointee(OriginGuard::new(
            &options.allowed_hosts,
            &options.allowed_origins,
            &address,
        )),
        sessions: SessionTable::new(&options),
        intake: server.options().request_quota(true),
        body_workers: BodyWorkers::new(),
        requests: SharedQuota::new(usize::MAX, options.requests_per_caller),
        connections: SharedQuota::new(options.connections, options.connections_per_address),
        metrics_cache: MetricsCache::default(),
        streams: SseStreams::default(),
        rejections: new_rejection_log(),
        life: life.clone(),
        address: address.clone(),
        server: Arc::clone(&server),
        options,
    });
    let counted = Arc::downgrade(&app);
    server.register_traffic_source(Box::new(move || counted.upgrade().map(|app| app.traffic())));
    let expiring = Arc::clone(&app);
    tokio::spawn(async move {
        expiring
            .sessions
            .expire_idle(expiring.life.closing.clone())
            .await;
    });
    let reading = Arc::clone(&app);
    tokio::spawn(async move {
        if let Some(oauth) = reading.gate.oauth() {
            oauth
                .reload_keys_periodically(reading.life.ended.clone())
                .await;
        }
    });
    access.register(&app);
    let scheme = if app.options.tls.is_some() {
        "https"
    } else {
        "http"
    };
    match &address {
        ListenAddress::Internet(address) => {
            tracing::info!("listening on {scheme}://{address}{MCP_PATH}");
        }
        ListenAddress::Unix(_) => {
            tracing::info!(
                "listening on {address} (for {scheme}://{}{MCP_PATH})",
                address.authority()
            );
        }
    }
    let _tls_reload = app
        .options
        .tls
        .clone()
        .map(|tls| AbortOnDropHandle::new(tokio::spawn(tls.reload_periodically())));
    let places = ConnectionPlaces::new(Arc::clone(&app.connections), &address);
    let result = listener::serve(
        listener,
        router(&app),
        places,
        &app.options,
        &life,
        server.options().grace_period,
    )
    .await;
    life.ended.cancel();
    app.rejections.write_counts(true);
    result.context("failed to accept connections")
}

fn router(app: &Arc<HttpState>) -> Router {
    let endpoint = post(endpoint::post)
        .get(endpoint::get)
        .delete(endpoint::delete);
    let mut callable = Router::new()
        .route(MCP_PATH, endpoint.clone())
        .route(MCP_PATH_WITH_SLASH, endpoint);
    if app.options.sse {
        callable = callable
            .route(sse::SSE_PATH, get(sse::open_stream))
            .route(sse::MESSAGES_PATH, post(sse::post_message));
    }
    let pages = Arc::clone(app);
    let origins = AllowOrigin::predicate(move |origin, _| {
        origin
            .to_str()
            .is_ok_and(|origin| pages.guard.load().is_allowed_origin(origin))
    });
    let cors = CorsLayer::new()
        .allow_origin(origins)
        .allow_methods([Method::GET, Method::POST, Method::DELETE])
        .allow_headers(AllowHeaders::mirror_request())
        .max_age(PREFLIGHT_MAX_AGE)
        .expose_headers([headers::SESSION_ID, RETRY_AFTER, WWW_AUTHENTICATE]);
    let mut guarded = callable
        .layer(from_fn_with_state(Arc::clone(app), authenticate))
        .route(oauth::METADATA_PATH, get(resource_metadata))
        .route(
            &format!("{}/{{*path}}", oauth::METADATA_PATH),
            get(resource_metadata),
        )
        .layer(cors);
    if app.options.metrics {
        // Without CORS headers, so that no page can read the metrics.
        guarded = guarded.route(METRICS_PATH, get(metrics_endpoint::get));
    }
    if let Some(pages) = app.options.pages.clone() {
        // Also without CORS headers: the pages are for people.
        guarded = guarded.merge(pages.with_state(()));
    }
    let guarded = guarded.layer(from_fn_with_state(Arc::clone(app), check_origin));
    Router::new()
        // Probes use the address as `Host`; these responses contain nothing that a page must not
        // see.
        .route(listener::PROBE_PATHS[0], get(|| async { "ok\n" }))
        .route(listener::PROBE_PATHS[1], get(readiness))
        .method_not_allowed_fallback(|| async { (StatusCode::METHOD_NOT_ALLOWED, wrong_method_text()) })
        .merge(guarded)
        .fallback(not_found)
        .layer(CatchPanicLayer::new())
        // Logs only the path, because the query of a URL may contain a secret.
        .layer(
            TraceLayer::new_for_http()
                .make_span_with(|request: &Request| {
                    tracing::debug_span!("request", method = %request.method(), path = request.uri().path())
                })
                // Otherwise each refused request (503) of an overload would be logged as an error.
                .on_failure(()),
        )
        .layer(SetSensitiveRequestHeadersLayer::new([AUTHORIZATION]))
        .with_state(Arc::clone(app))
}

/// Rejects requests that a foreign web page could have sent.
async fn check_origin(State(app): State<Arc<HttpState>>, request: Request, next: Next) -> Response {
    match app.guard.load().check(request.uri(), request.headers()) {
        Ok(()) => with_wrong_method_text(next.run(request).await),
        Err((status, why, reason)) => {
            let network = network_of(request.extensions()).unwrap_or_default();
            if app.rejections.needs_line(&network, reason) {
                tracing::warn!(peer = network, "request rejected: {why}");
            }
            (status, why).into_response()
        }
    }
}

/// Authenticates the caller and attaches it, and the validity of its credentials, to the request.
/// Limits the open requests of a caller.
async fn authenticate(
    State(app): State<Arc<HttpState>>,
    Extension(peer): Extension<HttpPeer>,
    mut request: Request,
    next: Next,
) -> Response {
    match app
        .gate
        .authenticate(request.headers(), peer.source, app.server.calls())
    {
        Ok((caller, trust)) => {
            let Ok(place) = app.requests.try_reserve(&caller.name, 1) else {
                let id = ErrorId::of(request.headers());
                return post_response::unavailable_response(
                    &too_many_requests(app.options.requests_per_caller),
                    id,
                );
            };
            request.extensions_mut().insert(caller);
            request.extensions_mut().insert(trust);
            response_body::hold_until_sent(next.run(request).await, place, &peer.half_closed)
        }
        Err(denied) => app.reject(peer.source, &denied),
    }
}

fn too_many_requests(most: usize) -> Error {
    let what = format!(
        "this caller has {most} requests open already; retry later (to allow more, raise http.requests_per_caller)"
    );
    Error::new(INVALID_REQUEST, what)
}

/// Readiness probe. Ready once the plugins that existed at startup are loaded or refused, until
/// shutdown starts.
async fn readiness(State(app): State<Arc<HttpState>>) -> (StatusCode, &'static str) {
    if app.life.closing.is_cancelled() {
        (StatusCode::SERVICE_UNAVAILABLE, "stopping\n")
    } else if app.server.loading().is_complete() {
        (StatusCode::OK, "ready\n")
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "loading\n")
    }
}

/// Adds an explanation to a 405 response without a body. For a wrong URL, it is all that a client
/// shows to its user.
fn with_wrong_method_text(response: Response) -> Response {
    if response.status() != StatusCode::METHOD_NOT_ALLOWED
        || response.body().size_hint().exact() != Some(0)
    {
        return response;
    }
    let (mut parts, _) = response.into_parts();
    parts.headers.remove(CONTENT_LENGTH);
    parts.headers.insert(
        CONTENT_TYPE,
        HeaderValue::from_static("text/plain; charset=utf-8"),
    );
    Response::from_parts(parts, Body::from(wrong_method_text()))
}

fn wrong_method_text() -> String {
    format!("this method is not allowed here; MCP clients send POST requests to {MCP_PATH}\n")
}

/// Responds to unknown paths, and to the paths of a transport that is off.
async fn not_found(State(app): State<Arc<HttpState>>, uri: Uri) -> (StatusCode, String) {
    let path = uri.path();
    // Tolerates extra slashes.
    let near = [sse::SSE_PATH, sse::MESSAGES_PATH]
        .into_iter()
        .find(|near| path.trim_matches('/') == near.trim_matches('/'));
    let text = match near {
        Some(near) if app.options.sse => format!(
            "the HTTP+SSE transport of 2024-11-05 is served at {near}, without another slash; newer revisions are \
             served at {MCP_PATH}\n"
        ),
        Some(_) => {
            format!(
                "the HTTP+SSE transport of 2024-11-05 is off; start the server with --sse, or use {MCP_PATH}\n"
            )
        }
        None => format!("nothing is served here; MCP is served at {MCP_PATH}\n"),
    };
    (StatusCode::NOT_FOUND, text)
}

/// Returns the metadata of the protected resource (RFC 9728).
async fn resource_metadata(State(app): State<Arc<HttpState>>) -> Response {
    match app.gate.oauth() {
        Some(oauth) => (
            [(CONTENT_TYPE, JSON_CONTENT_TYPE)],
            oauth.metadata().to_string(),
        )
            .into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}
