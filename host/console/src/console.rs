//! The HTTP router of the console: request handlers for pages and forms.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Query, Request, State};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use axum::{Router, extract};
use http::header::{SET_COOKIE, WWW_AUTHENTICATE};
use http::{Extensions, HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use maud::Markup;
use tokio::sync::Semaphore;

use crate::access::ConsoleAccess;
use crate::answer::{guarded, page, see_other};
use crate::assets::{SCRIPT, STYLE};
use crate::data::ApprovalOutcome;
use crate::desk::PageContext;
use crate::door::LoginPermits;
use crate::form::FieldValues;
use crate::guard::{cookie, is_secure, may_change, may_read};
use crate::operations::ConsoleOperations;
use crate::pages;
use crate::paths::{CSRF, PATH};
use crate::posted::{posted, whole};
use crate::secret::hash;
use crate::sessions::{ConsoleSession, ConsoleSessions};
use crate::shown::query;
use crate::watch::ServerActivity;

/// Maximum number of concurrent requests with a session. Further requests are rejected, because a
/// console serves few people.
const AT_ONCE: usize = 64;

/// Maximum size of a login form or of another small form, in bytes.
const LOGIN: usize = 4 << 10;

/// Maximum size of a form with tool arguments, in bytes.
const ARGUMENTS: usize = 1 << 20;

/// Header of the script's update requests. If the session has ended, their response is an error
/// instead of a redirect to the login page.
const LIVE: HeaderName = HeaderName::from_static("toolbay-live");

/// The console of one server.
#[derive(Clone)]
pub struct Console(Arc<ConsoleState>);

/// Maximum time in which the body of a request must arrive. Forms are short.
const MAX_BODY_TIME: Duration = Duration::from_secs(30);

struct ConsoleState {
    desk: PageContext,
    access: ConsoleAccess,
    sessions: ConsoleSessions,
    /// Name of the session cookie. It differs between servers on one host, because browsers send
    /// cookies to all ports.
    cookie: String,
    /// Permits for requests with a session.
    places: Semaphore,
    /// Permits for requests without a session. They are separate, so that such requests cannot
    /// block viewers with a session.
    door: LoginPermits,
    /// Function that returns the origin of a request.
    origin: RemoteAddress,
    /// Time in which the body of a request must arrive.
    body_time: Duration,
}

impl ConsoleState {
    /// Returns the session with this cookie if its credential is still valid. Ends the session
    /// otherwise.
    fn session(&self, cookie: &str) -> Option<ConsoleSession> {
        let session = self.sessions.of(cookie).filter(|session| self.access.holds(&session.viewer, session.proof));
        if session.is_none() {
            self.sessions.end(cookie);
        }
        session
    }
}

impl fmt::Debug for Console {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Console").finish_non_exhaustive()
    }
}

/// Function that returns the remote address of a request, as determined by the HTTP server.
pub type RemoteAddress = fn(&Extensions) -> Option<String>;

/// The parsed query string; empty if there is none.
pub(crate) type QueryValue = Query<FieldValues>;

impl Console {
    /// Creates the console of the server behind `operations`.
    ///
    /// `name` must be unique among the servers on this host, such as the port. A session ends after
    /// at most `life`. Requests without a session have a limit for each `origin`. The body of a
    /// request must arrive within `body_time`, at most 30 seconds.
    pub fn new(
        operations: Arc<dyn ConsoleOperations>,
        watch: Arc<ServerActivity>,
        access: ConsoleAccess,
        name: impl fmt::Display,
        life: Duration,
        origin: RemoteAddress,
        body_time: Duration,
    ) -> Self {
        let cookie = format!("toolbay_console_{name}");
        let (sessions, places, door) = (ConsoleSessions::new(life), Semaphore::new(AT_ONCE), LoginPermits::default());
        let desk = PageContext { operations, watch };
        Self(Arc::new(ConsoleState {
            desk,
            access,
            sessions,
            cookie,
            places,
            door,
            origin,
            body_time: body_time.min(MAX_BODY_TIME),
        }))
    }

    /// Returns the router. The caller must check the `Host` of requests. Logs the address that
    /// opens the console, if login tokens are logged.
    pub fn router(self) -> Router {
        self.0.access.announce();
        let at = |path: &str| format!("{PATH}{path}");
        Router::new()
            .route("/", get(|| async { see_other(PATH) }))
            .route(PATH, get(overview))
            .route(&at("/"), get(|| async { see_other(PATH) }))
            .route(&at("/plugins"), get(plugins))
            .route(&at("/plugin"), get(plugin).post(rest))
            .route(&at("/tools"), get(tools))
            .route(&at("/tool"), get(tool).post(call))
            .route(&at("/calls"), get(calls))
            .route(&at("/denied"), get(denied))
            .route(&at("/approvals"), get(approvals))
            .route(&at("/approval"), post(answer))
            .route(&at("/audit"), get(audit))
            .route(&at("/log"), get(log))
            .route(&at("/cache"), post(clear))
            .route(&at("/login"), get(login).post(enter))
            .route(&at("/logout"), post(leave))
            .route(&at("/style.css"), get(|| async { STYLE.response() }))
            .route(&at("/script.js"), get(|| async { SCRIPT.response() }))
            .layer(from_fn_with_state(Arc::clone(&self.0), admit))
            .layer(from_fn(|request: Request, next: Next| async { guarded(next.run(request).await) }))
            .with_state(self.0)
    }
}

type SharedConsole = State<Arc<ConsoleState>>;

/// Limits the number of concurrent requests.
async fn admit(State(inner): SharedConsole, request: Request, next: Next) -> Response {
    let session = cookie(request.headers(), &inner.cookie).and_then(|cookie| inner.session(cookie));
    if session.is_some() {
        let Ok(_place) = inner.places.try_acquire() else { return busy() };
        return next.run(request).await;
    }
    // A body that is still arriving holds no permit, so a slow client does not block others.
    let request = match arrived(request, inner.body_time).await {
        Ok(request) => request,
        Err(refused) => return refused,
    };
    let Some(_place) = inner.door.enter((inner.origin)(request.extensions())) else { return busy() };
    next.run(request).await
}

fn busy() -> Response {
    (StatusCode::SERVICE_UNAVAILABLE, "the console is busy; retry later\n").into_response()
}

/// Receives the whole body of a request without a session. The body must arrive within `time`.
async fn arrived(request: Request, time: Duration) -> Result<Request, Response> {
    let (head, body) = request.into_parts();
    if head.method != Method::POST {
        return Ok(Request::from_parts(head, Body::empty()));
    }
    let bytes = whole(body, LOGIN, time).await.map_err(|(status, why)| refused(status, why))?;
    Ok(Request::from_parts(head, bytes.into()))
}

/// Returns the session of a read request, if it has one.
fn reader(inner: &ConsoleState, headers: &HeaderMap) -> Option<ConsoleSession> {
    inner.session(cookie(headers, &inner.cookie).filter(|_| may_read(headers))?)
}

/// Returns the response to a read request without a session.
fn turned_away(headers: &HeaderMap) -> Response {
    if headers.contains_key(LIVE) {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    see_other(&format!("{PATH}/login"))
}

/// Checks a request that changes state. Returns its session and its form of at most `most` bytes.
async fn changer(
    inner: &ConsoleState,
    request: Request,
    most: usize,
) -> Result<(ConsoleSession, FieldValues), Response> {
    let (head, body) = request.into_parts();
    if !may_change(&head.headers) {
        tracing::warn!("console: a form of another page was rejected");
        return Err(refused(StatusCode::FORBIDDEN, "This form was not sent by a page of the console."));
    }
    let session = cookie(&head.headers, &inner.cookie).and_then(|cookie| inner.session(cookie));
    session.ok_or_else(ended)?;
    let mut form = read(&head.headers, body, most, inner.body_time).await?;
    // Look up the session again: the body may have been slow, and the current rights apply.
    let session = cookie(&head.headers, &inner.cookie).and_then(|cookie| inner.session(cookie)).ok_or_else(ended)?;
    let token = form.remove(CSRF).unwrap_or_default();
    if hash(&token) != hash(&session.csrf) {
        tracing::warn!(viewer = session.viewer.name, "console: a form without the token of its session was rejected");
        return Err(refused(StatusCode::FORBIDDEN, "This form does not belong to your session. Load its page again."));
    }
    Ok((session, form))
}

fn ended() -> Response {
    refused(StatusCode::UNAUTHORIZED, "Your session has ended. Open the console again, and repeat it.")
}

async fn read(headers: &HeaderMap, body: Body, most: usize, time: Duration) -> Result<FieldValues, Response> {
    posted(headers, body, most, time).await.map_err(|(status, why)| refused(status, why))
}

fn refused(status: StatusCode, why: &str) -> Response {
    page(status, pages::refused(why))
}

async fn login(State(inner): SharedConsole, headers: HeaderMap) -> Response {
    if reader(&inner, &headers).is_some() {
        return see_other(PATH);
    }
    page(StatusCode::OK, pages::login(inner.access.advice(), None))
}

/// Exchanges a token for a session.
async fn enter(State(inner): SharedConsole, request: Request) -> Response {
    let (head, body) = request.into_parts();
    if !may_change(&head.headers) {
        tracing::warn!("console: a login of another page was rejected");
        return refused(StatusCode::FORBIDDEN, "This form was not sent by a page of the console.");
    }
    let form = match read(&head.headers, body, LOGIN, inner.body_time).await {
        Ok(form) => form,
        Err(refused) => return refused,
    };
    let token = form.get("token").map(|token| token.trim()).unwrap_or_default();
    let Some((viewer, proof)) = inner.access.viewer(token) else {
        tracing::warn!("console: a login with a wrong or used token was rejected");
        let why = "This token opens nothing: it is wrong, or was used before.";
        let mut response = page(StatusCode::UNAUTHORIZED, pages::login(inner.access.advice(), Some(why)));
        response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Toolbay-Console"));
        return response;
    };
    tracing::info!(viewer = viewer.name, "console: opened");
    // End the previous session of this browser.
    if let Some(before) = cookie(&head.headers, &inner.cookie) {
        inner.sessions.end(before);
    }
    match inner.sessions.begin(viewer, proof) {
        Some(value) => with_cookie(&inner, &value, inner.sessions.life(), is_secure(&head.headers)),
        None => refused(StatusCode::SERVICE_UNAVAILABLE, "The system provides no random bytes."),
    }
}

async fn leave(State(inner): SharedConsole, request: Request) -> Response {
    let headers = request.headers().clone();
    if let Err(refused) = changer(&inner, request, LOGIN).await {
        return refused;
    }
    if let Some(value) = cookie(&headers, &inner.cookie) {
        inner.sessions.end(value);
    }
    with_cookie(&inner, "", Duration::ZERO, is_secure(&headers))
}

/// Redirects to the console and sets its cookie.
fn with_cookie(inner: &ConsoleState, value: &str, life: Duration, secure: bool) -> Response {
    let secure = if secure { "; Secure" } else { "" };
    let cookie =
        format!("{}={value}; Path={PATH}; Max-Age={}; HttpOnly; SameSite=Strict{secure}", inner.cookie, life.as_secs());
    let mut response = see_other(PATH);
    if let Ok(cookie) = HeaderValue::from_str(&cookie) {
        response.headers_mut().insert(SET_COOKIE, cookie);
    }
    response
}

/// Renders a page on a blocking thread. With thousands of plugins this takes milliseconds, and the
/// async thread has calls to serve.
async fn written(
    inner: &Arc<ConsoleState>,
    headers: &HeaderMap,
    write: impl FnOnce(&PageContext, &ConsoleSession) -> Response + Send + 'static,
) -> Response {
    let Some(session) = reader(inner, headers) else { return turned_away(headers) };
    let inner = Arc::clone(inner);
    let writing = tokio::task::spawn_blocking(move || write(&inner.desk, &session));
    writing.await.unwrap_or_else(|_| StatusCode::INTERNAL_SERVER_ERROR.into_response())
}

fn shown(markup: Markup) -> Response {
    page(StatusCode::OK, markup)
}

async fn overview(State(inner): SharedConsole, headers: HeaderMap, Query(asked): QueryValue) -> Response {
    written(&inner, &headers, move |desk, session| shown(pages::overview(desk, session, told(&asked)))).await
}

async fn plugins(State(inner): SharedConsole, headers: HeaderMap, Query(asked): QueryValue) -> Response {
    written(&inner, &headers, move |desk, session| shown(pages::plugins(desk, session, text(&asked, "q")))).await
}

async fn plugin(State(inner): SharedConsole, headers: HeaderMap, Query(asked): QueryValue) -> Response {
    let write = move |desk: &PageContext, session: &ConsoleSession| match desk.operations.plugin(text(&asked, "id")) {
        Some(detail) => shown(pages::plugin(session, &detail, told(&asked))),
        None => missing(session, "plugin"),
    };
    written(&inner, &headers, write).await
}

async fn tools(State(inner): SharedConsole, headers: HeaderMap, Query(asked): QueryValue) -> Response {
    let from = text(&asked, "from").parse().unwrap_or_default();
    written(&inner, &headers, move |desk, session| shown(pages::tools(desk, session, text(&asked, "q"), from))).await
}

async fn tool(State(inner): SharedConsole, headers: HeaderMap, Query(asked): QueryValue) -> Response {
    let write = move |desk: &PageContext, session: &ConsoleSession| {
        let Some(detail) = desk.operations.tool(text(&asked, "name")) else { return missing(session, "tool") };
        let may_call = desk.operations.may_use(&session.viewer, &detail.row.name);
        let tried = pages::ToolTrial::not(&detail, asked.contains_key("json"));
        shown(pages::tool(session, &detail, may_call, &tried))
    };
    written(&inner, &headers, write).await
}

async fn calls(State(inner): SharedConsole, headers: HeaderMap, Query(asked): QueryValue) -> Response {
    let failed = asked.contains_key("failed");
    written(&inner, &headers, move |desk, session| shown(pages::calls(desk, session, text(&asked, "q"), failed))).await
}

async fn denied(State(inner): SharedConsole, headers: HeaderMap) -> Response {
    written(&inner, &headers, |desk, session| shown(pages::denied(desk, session))).await
}

async fn approvals(State(inner): SharedConsole, headers: HeaderMap, Query(asked): QueryValue) -> Response {
    written(&inner, &headers, move |desk, session| shown(pages::approvals(desk, session, told(&asked)))).await
}

async fn audit(State(inner): SharedConsole, headers: HeaderMap) -> Response {
    if reader(&inner, &headers).is_none() {
        return turned_away(&headers);
    }
    let lines = inner.desk.operations.audit(pages::AUDIT_LINES).await;
    written(&inner, &headers, move |_, session| shown(pages::audit(session, lines.as_ref()))).await
}

async fn log(State(inner): SharedConsole, headers: HeaderMap, Query(asked): QueryValue) -> Response {
    written(&inner, &headers, move |desk, session| shown(pages::log(desk, session, text(&asked, "q")))).await
}

/// Calls a tool with the submitted arguments.
async fn call(State(inner): SharedConsole, request: extract::Request) -> Result<Response, Response> {
    let (session, form) = changer(&inner, request, ARGUMENTS).await?;
    let name = text(&form, "tool");
    let Some(detail) = inner.desk.operations.tool(name) else { return Ok(missing(&session, "tool")) };
    let may_call = inner.desk.operations.may_use(&session.viewer, name);
    let tried = if may_call {
        pages::ToolTrial::call(&*inner.desk.operations, &session, &detail, form).await
    } else {
        pages::ToolTrial::not(&detail, form.contains_key("raw"))
    };
    let status = if may_call { StatusCode::OK } else { StatusCode::FORBIDDEN };
    let writing = tokio::task::spawn_blocking(move || page(status, pages::tool(&session, &detail, may_call, &tried)));
    Ok(writing.await.unwrap_or_else(|_| StatusCode::INTERNAL_SERVER_ERROR.into_response()))
}

/// Suspends or resumes a plugin.
async fn rest(State(inner): SharedConsole, request: extract::Request) -> Result<Response, Response> {
    let (session, form) = changer(&inner, request, LOGIN).await?;
    let (id, rests) = (text(&form, "id"), text(&form, "rests") == "yes");
    if !inner.desk.operations.rest(&session.viewer, id, rests) {
        return Ok(missing(&session, "plugin"));
    }
    let done = if rests { "rests" } else { "serves" };
    tracing::info!(viewer = session.viewer.name, plugin = id, "console: the plugin {done}");
    Ok(see_other(&format!("{PATH}/plugin?{}", query(&[("id", id), ("done", done)]))))
}

/// Approves or declines a waiting call.
async fn answer(State(inner): SharedConsole, request: extract::Request) -> Result<Response, Response> {
    let (session, form) = changer(&inner, request, LOGIN).await?;
    let yes = match text(&form, "answer") {
        "approve" => true,
        "decline" => false,
        _ => return Err(refused(StatusCode::BAD_REQUEST, "The form says neither yes nor no.")),
    };
    let id = text(&form, "id").parse().unwrap_or_default();
    match inner.desk.operations.answer(&session.viewer, id, yes).await {
        ended @ (ApprovalOutcome::Done | ApprovalOutcome::Outdated | ApprovalOutcome::Resting) => {
            let done = if yes { "approved" } else { "declined" };
            tracing::info!(viewer = session.viewer.name, "console: a call that waited was {done}");
            let told = match ended {
                ApprovalOutcome::Outdated => "outdated",
                ApprovalOutcome::Resting => "resting",
                _ => done,
            };
            Ok(see_other(&format!("{PATH}/approvals?done={told}")))
        }
        ApprovalOutcome::Gone => Ok(page(StatusCode::CONFLICT, pages::over(&session))),
        ApprovalOutcome::Forbidden => Err(refused(
            StatusCode::FORBIDDEN,
            "Your token may not call this tool, so it cannot allow a call of it either.",
        )),
    }
}

/// Empties the compile cache.
async fn clear(State(inner): SharedConsole, request: extract::Request) -> Result<Response, Response> {
    let (session, _) = changer(&inner, request, LOGIN).await?;
    let done = match inner.desk.operations.clear_cache(&session.viewer).await {
        Ok(cleared) => {
            let (components, bytes) = (cleared.components, cleared.bytes);
            tracing::info!(viewer = session.viewer.name, components, bytes, "console: the compile cache was cleared");
            "cleared"
        }
        Err(why) => {
            tracing::warn!(viewer = session.viewer.name, "console: the compile cache could not be cleared: {why}");
            "uncleared"
        }
    };
    Ok(see_other(&format!("{PATH}?done={done}")))
}

fn missing(session: &ConsoleSession, what: &str) -> Response {
    page(StatusCode::NOT_FOUND, pages::missing(session, what))
}

/// Returns the notice after a form was submitted. Only these fixed texts can appear, so a crafted
/// URL cannot place text on a page.
fn told(asked: &FieldValues) -> Option<&'static str> {
    Some(match text(asked, "done") {
        "rests" => "The plugin rests: it rejects all calls until you wake it, or until it is loaded again.",
        "serves" => "The plugin serves calls again, those of all callers.",
        "approved" => "You have allowed the call. It goes on, and the question is withdrawn from the client.",
        "outdated" => {
            "You have allowed the call, but its plugin or grant has changed since it was asked for. So it fails, and its client \
             can call again. The question is withdrawn from the client."
        }
        "resting" => {
            "You have allowed the call, but its plugin rests. So it is rejected. The question is withdrawn from the client."
        }
        "declined" => "You have declined the call. It has failed, and the question is withdrawn from the client.",
        "cleared" => "The compile cache was cleared. Components are compiled again when they are needed.",
        "uncleared" => "The compile cache could not be cleared. The log says why.",
        _ => return None,
    })
}

fn text<'a>(values: &'a FieldValues, name: &str) -> &'a str {
    values.get(name).map(String::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests;
