//! MCP over HTTP: one endpoint for both eras, and what belongs around it.
//!
//! A request passes the `guard` (Host and Origin), then the `auth` gate, then
//! the `endpoint`, which finds or makes the session that answers it. Sessions
//! that `initialize` began are in `sessions`; a stateless request has one for
//! itself that ends with it. `reply` turns what a session says into a response.

mod auth;
mod endpoint;
mod guard;
mod headers;
mod listener;
mod oauth;
mod reply;
mod sessions;
mod sse;

use std::io;
use std::sync::Arc;

use anyhow::Context as _;
use axum::Router;
use axum::extract::{Extension, Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use http::header::{AUTHORIZATION, CONTENT_TYPE, HeaderName, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{Method, StatusCode};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::cors::{AllowHeaders, AllowOrigin, CorsLayer};
use tower_http::sensitive_headers::SetSensitiveRequestHeadersLayer;
use tower_http::trace::TraceLayer;

use self::auth::Gate;
use self::guard::Guard;
use self::listener::Peer;
use self::reply::JSON;
use self::sessions::Sessions;
use crate::config::Http;
use crate::service::Service;

/// Where MCP is served.
pub const PATH: &str = "/mcp";

/// What every request needs.
struct App {
    service: Arc<Service>,
    gate: Gate,
    guard: Guard,
    sessions: Sessions,
    streams: sse::Streams,
    /// No more requests; streams end.
    stop: CancellationToken,
}

impl App {
    fn config(&self) -> &Http {
        &self.service.config().http
    }
}

/// Serves clients on `listener` until `stop`, and then for the grace time at the most.
///
/// # Errors
///
/// What the configuration names cannot be read, or the listener has no address.
pub async fn serve(service: Arc<Service>, listener: TcpListener, stop: CancellationToken) -> anyhow::Result<()> {
    let address = listener.local_addr().context("failed to read the address that is listened on")?;
    let config = &service.config().http;
    let gate = Gate::new(config, service.admission()).map_err(anyhow::Error::msg)?;
    let app = Arc::new(App {
        gate,
        guard: Guard::new(config, address),
        sessions: Sessions::new(config.sessions, config.session_idle),
        streams: sse::Streams::default(),
        stop: stop.clone(),
        service: Arc::clone(&service),
    });
    let expiring = Arc::clone(&app);
    tokio::spawn(async move { expiring.sessions.expire(expiring.stop.clone()).await });
    tracing::info!("listening on http://{address}{PATH}");
    let grace = service.config().server.grace;
    let result = listener::serve(listener, router(&app), config, &stop, grace).await;
    for session in app.sessions.all() {
        session.ended.cancel();
    }
    result.context("failed to accept connections")
}

fn router(app: &Arc<App>) -> Router {
    let mut callable = Router::new().route(PATH, post(endpoint::post).get(endpoint::get).delete(endpoint::delete));
    if app.config().sse {
        callable = callable.route(sse::PATH, get(sse::open)).route(sse::MESSAGES, post(sse::post));
    }
    let pages = Arc::clone(app);
    let origins =
        AllowOrigin::predicate(move |origin, _| origin.to_str().is_ok_and(|origin| pages.guard.origin(origin)));
    let cors = CorsLayer::new()
        .allow_origin(origins)
        .allow_methods([Method::GET, Method::POST, Method::DELETE])
        .allow_headers(AllowHeaders::mirror_request())
        .expose_headers([endpoint::SESSION_ID, RETRY_AFTER, WWW_AUTHENTICATE]);
    let guarded = callable
        .layer(from_fn_with_state(Arc::clone(app), admit))
        .route(oauth::METADATA, get(metadata))
        .route(&format!("{}/{{*path}}", oauth::METADATA), get(metadata))
        .layer(cors)
        .layer(from_fn_with_state(Arc::clone(app), guard));
    Router::new()
        // Probes come by address; these say nothing that a page must not see.
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(ready))
        .merge(guarded)
        .layer(CatchPanicLayer::new())
        // Not the whole address: what is after its path may be a secret.
        .layer(TraceLayer::new_for_http().make_span_with(|request: &Request| {
            tracing::debug_span!("request", method = %request.method(), path = request.uri().path())
        }))
        .layer(SetSensitiveRequestHeadersLayer::new([AUTHORIZATION]))
        .with_state(Arc::clone(app))
}

/// Lets nobody through whom a web page sent here.
async fn guard(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    match app.guard.check(request.headers()) {
        Ok(()) => next.run(request).await,
        Err(why) => {
            tracing::warn!("refused a request: {why}");
            (StatusCode::FORBIDDEN, why).into_response()
        }
    }
}

/// Lets callers through who may call, and notes who it is.
async fn admit(
    State(app): State<Arc<App>>,
    Extension(Peer(peer)): Extension<Peer>,
    mut request: Request,
    next: Next,
) -> Response {
    match app.gate.caller(request.headers(), peer, app.service.admission()) {
        Ok(caller) => {
            request.extensions_mut().insert(caller);
            next.run(request).await
        }
        Err(denied) => {
            tracing::info!(%peer, ?denied, "nobody who may call");
            app.gate.challenge(denied)
        }
    }
}

/// Whether the plugins that were there at start are loaded, and the end has not begun.
async fn ready(State(app): State<Arc<App>>) -> (StatusCode, &'static str) {
    if app.stop.is_cancelled() {
        (StatusCode::SERVICE_UNAVAILABLE, "stopping\n")
    } else if app.service.is_complete() {
        (StatusCode::OK, "ready\n")
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "loading\n")
    }
}

/// Which authorization servers tokens come from.
async fn metadata(State(app): State<Arc<App>>) -> Response {
    match app.gate.oauth() {
        Some(oauth) => ([(CONTENT_TYPE, JSON)], oauth.metadata().to_string()).into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

/// The body of a request, which may be as long as a line on standard input.
async fn body(app: &App, body: axum::body::Body) -> Result<axum::body::Bytes, Response> {
    let request = app.service.config().server.request;
    let limit = usize::try_from(request.as_u64()).unwrap_or(usize::MAX);
    let read = tokio::time::timeout(app.config().idle, axum::body::to_bytes(body, limit)).await;
    match read {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(error)) if is_too_long(&error) => {
            let what = format!("the message is longer than {} (server.request raises it)", request.display().iec());
            let error = super::jsonrpc::Error::new(super::jsonrpc::INVALID_REQUEST, what);
            Err(reply::refusal(StatusCode::PAYLOAD_TOO_LARGE, &error))
        }
        Ok(Err(_)) => Err(StatusCode::BAD_REQUEST.into_response()),
        Err(_elapsed) => Err(StatusCode::REQUEST_TIMEOUT.into_response()),
    }
}

fn is_too_long(error: &axum::Error) -> bool {
    std::error::Error::source(error).is_some_and(<dyn std::error::Error>::is::<http_body_util::LengthLimitError>)
}

/// Binds the address.
///
/// # Errors
///
/// It is in use, or not one of this machine.
pub async fn bind(address: std::net::SocketAddr) -> io::Result<TcpListener> {
    TcpListener::bind(address).await
}

/// Names that more than one part has use for.
const fn name(text: &'static str) -> HeaderName {
    HeaderName::from_static(text)
}
