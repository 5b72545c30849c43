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

use crate::access::ConsoleAccess;
use crate::activity::ServerActivity;
use crate::assets::{SCRIPT, STYLE};
use crate::form::FieldValues;
use crate::form_body::{read_body, read_form};
use crate::formatting::encode_query;
use crate::operations::ConsoleOperations;
use crate::page_context::PageContext;
use crate::pages;
use crate::paths::{CSRF_FIELD, PATH};
use crate::rejection_log::RejectionLog;
use crate::request_checks::{cookie, is_secure, may_change, may_read};
use crate::request_permits::RequestPermits;
use crate::responses::{page, see_other, with_security_headers};
use crate::secret::hash_secret;
use crate::server_data::ApprovalOutcome;
use crate::sessions::{ConsoleSession, ConsoleSessions};

/// Maximum size of a login form or of another small form, in bytes.
const MAX_SMALL_FORM_BYTES: usize = 4 << 10;

/// Maximum size of a form with tool arguments, in bytes.
const MAX_ARGUMENTS_FORM_BYTES: usize = 1 << 20;

/// Header of the script's update requests. If the session has ended, their response is an error
/// instead of a redirect to the login page.
const LIVE_HEADER: HeaderName = HeaderName::from_static("toolbay-live");

/// The console of one server.
#[derive(Clone)]
pub struct Console(Arc<ConsoleState>);

/// Maximum time in which the body of a request must arrive. Forms are short.
const MAX_BODY_TIME: Duration = Duration::from_secs(30);

struct ConsoleState {
    context: PageContext,
    access: ConsoleAccess,
    sessions: ConsoleSessions,
    /// Name of the session cookie. It differs between servers on one host, because browsers send
    /// cookies to all ports.
    cookie_name: String,
    /// Permits for requests with a session, with a limit for each viewer.
    permits: RequestPermits,
    /// Permits for requests without a session, with a limit for each address. They are separate, so
    /// that such requests cannot block viewers with a session.
    login_permits: RequestPermits,
    /// The rejected forms, for the log.
    rejections: Arc<RejectionLog>,
    /// Function that returns the origin of a request.
    remote_address: RemoteAddress,
    /// Time in which the body of a request must arrive.
    body_timeout: Duration,
}

impl ConsoleState {
    /// Returns the session with this cookie if its credential is still valid. Ends the session
    /// otherwise.
    fn session(&self, cookie: &str) -> Option<ConsoleSession> {
        let session = self
            .sessions
            .find(cookie)
            .filter(|session| self.access.is_valid(&session.viewer, session.proof));
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
    /// at most `life`. Each viewer, and each `origin` of requests without a session, has a limit of
    /// concurrent requests. The body of a request must arrive within `body_time`, at most 30
    /// seconds.
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
        let desk = PageContext {
            operations,
            activity: watch,
        };
        Self(Arc::new(ConsoleState {
            context: desk,
            access,
            sessions: ConsoleSessions::new(life),
            cookie_name: cookie,
            permits: RequestPermits::default(),
            login_permits: RequestPermits::default(),
            rejections: Arc::default(),
            remote_address: origin,
            body_timeout: body_time.min(MAX_BODY_TIME),
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
            .route(&at("/plugin"), get(plugin).post(set_plugin_suspended))
            .route(&at("/tools"), get(tools))
            .route(&at("/tool"), get(tool).post(call_tool))
            .route(&at("/calls"), get(calls))
            .route(&at("/denials"), get(denied))
            .route(&at("/approvals"), get(approvals))
            .route(&at("/approval"), post(answer_approval))
            .route(&at("/audit"), get(audit))
            .route(&at("/log"), get(log))
            .route(&at("/cache"), post(clear_cache))
            .route(&at("/login"), get(login).post(log_in))
            .route(&at("/logout"), post(log_out))
            .route(&at("/style.css"), get(|| async { STYLE.response() }))
            .route(&at("/script.js"), get(|| async { SCRIPT.response() }))
            .layer(from_fn_with_state(Arc::clone(&self.0), limit_requests))
            .layer(from_fn(|request: Request, next: Next| async {
                with_security_headers(next.run(request).await)
            }))
            .with_state(self.0)
    }
}

type SharedConsole = State<Arc<ConsoleState>>;

/// Limits the number of concurrent requests.
async fn limit_requests(State(inner): SharedConsole, request: Request, next: Next) -> Response {
    let session =
        cookie(request.headers(), &inner.cookie_name).and_then(|cookie| inner.session(cookie));
    if let Some(session) = session {
        // The permit is held while the body arrives, because the bodies of viewers can be large.
        let Some(_place) = inner.permits.try_acquire(Some(session.permit_owner())) else {
            return busy();
        };
        return next.run(request).await;
    }
    // A body that is still arriving holds no permit, so a slow client does not block others.
    let request = match receive_body(request, inner.body_timeout).await {
        Ok(request) => request,
        Err(refused) => return refused,
    };
    let Some(_place) = inner
        .login_permits
        .try_acquire((inner.remote_address)(request.extensions()))
    else {
        return busy();
    };
    next.run(request).await
}

fn busy() -> Response {
    (
        StatusCode::SERVICE_UNAVAILABLE,
        "the console is busy; retry later\n",
    )
        .into_response()
}

/// Receives the whole body of a request without a session. The body must arrive within `time`.
async fn receive_body(request: Request, time: Duration) -> Result<Request, Response> {
    let (head, body) = request.into_parts();
    if head.method != Method::POST {
        return Ok(Request::from_parts(head, Body::empty()));
    }
    let bytes = read_body(body, MAX_SMALL_FORM_BYTES, time)
        .await
        .map_err(|(status, why)| rejection_page(status, why))?;
    Ok(Request::from_parts(head, bytes.into()))
}

/// Returns the session of a read request, if it has one.
fn read_session(inner: &ConsoleState, headers: &HeaderMap) -> Option<ConsoleSession> {
    inner.session(cookie(headers, &inner.cookie_name).filter(|_| may_read(headers))?)
}

/// Returns the response to a read request without a session.
fn login_required(headers: &HeaderMap) -> Response {
    if headers.contains_key(LIVE_HEADER) {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    see_other(&format!("{PATH}/login"))
}

/// Checks a request that changes state. Returns its session and its form of at most `most` bytes.
async fn check_state_change(
    inner: &ConsoleState,
    request: Request,
    most: usize,
) -> Result<(ConsoleSession, FieldValues), Response> {
    let (head, body) = request.into_parts();
    if !may_change(&head.headers) {
        inner.rejections.warn(
            (inner.remote_address)(&head.extensions),
            "a form of another page",
        );
        return Err(rejection_page(
            StatusCode::FORBIDDEN,
            "This form was not sent by a page of the console.",
        ));
    }
    let session =
        cookie(&head.headers, &inner.cookie_name).and_then(|cookie| inner.session(cookie));
    session.ok_or_else(session_ended)?;
    let mut form = read_or_reject(&head.headers, body, most, inner.body_timeout).await?;
    // Look up the session again: the body may have been slow, and the current rights apply.
    let session = cookie(&head.headers, &inner.cookie_name)
        .and_then(|cookie| inner.session(cookie))
        .ok_or_else(session_ended)?;
    let token = form.remove(CSRF_FIELD).unwrap_or_default();
    if hash_secret(&token) != hash_secret(&session.csrf) {
        inner.rejections.warn(
            Some(session.viewer.name),
            "a form without the token of its session",
        );
        return Err(rejection_page(
            StatusCode::FORBIDDEN,
            "This form does not belong to your session. Load its page again.",
        ));
    }
    Ok((session, form))
}

fn session_ended() -> Response {
    rejection_page(
        StatusCode::UNAUTHORIZED,
        "Your session has ended. Open the console again, and repeat it.",
    )
}

async fn read_or_reject(
    headers: &HeaderMap,
    body: Body,
    most: usize,
    time: Duration,
) -> Result<FieldValues, Response> {
    read_form(headers, body, most, time)
        .await
        .map_err(|(status, why)| rejection_page(status, why))
}

fn rejection_page(status: StatusCode, why: &str) -> Response {
    page(status, pages::rejected_form(why))
}

async fn login(State(inner): SharedConsole, headers: HeaderMap) -> Response {
    if read_session(&inner, &headers).is_some() {
        return see_other(PATH);
    }
    page(
        StatusCode::OK,
        pages::login(inner.access.token_advice(), None),
    )
}

/// Exchanges a token for a session.
async fn log_in(State(inner): SharedConsole, request: Request) -> Response {
    let (head, body) = request.into_parts();
    if !may_change(&head.headers) {
        inner.rejections.warn(
            (inner.remote_address)(&head.extensions),
            "a login of another page",
        );
        return rejection_page(
            StatusCode::FORBIDDEN,
            "This form was not sent by a page of the console.",
        );
    }
    let form = match read_or_reject(
        &head.headers,
        body,
        MAX_SMALL_FORM_BYTES,
        inner.body_timeout,
    )
    .await
    {
        Ok(form) => form,
        Err(refused) => return refused,
    };
    let token = form
        .get("token")
        .map(|token| token.trim())
        .unwrap_or_default();
    let Some((viewer, proof)) = inner.access.authenticate(token) else {
        inner.rejections.warn(
            (inner.remote_address)(&head.extensions),
            "a login with a wrong or used token",
        );
        let why = "This token is wrong or was used before.";
        let mut response = page(
            StatusCode::UNAUTHORIZED,
            pages::login(inner.access.token_advice(), Some(why)),
        );
        response.headers_mut().insert(
            WWW_AUTHENTICATE,
            HeaderValue::from_static("Toolbay-Console"),
        );
        return response;
    };
    tracing::info!(viewer = viewer.name, "console: opened");
    // End the previous session of this browser.
    if let Some(before) = cookie(&head.headers, &inner.cookie_name) {
        inner.sessions.end(before);
    }
    match inner.sessions.start(viewer, proof) {
        Some(value) => redirect_with_cookie(
            &inner,
            &value,
            inner.sessions.max_age(),
            is_secure(&head.headers),
        ),
        None => rejection_page(
            StatusCode::SERVICE_UNAVAILABLE,
            "The system provides no random bytes.",
        ),
    }
}

async fn log_out(State(inner): SharedConsole, request: Request) -> Response {
    let headers = request.headers().clone();
    if let Err(refused) = check_state_change(&inner, request, MAX_SMALL_FORM_BYTES).await {
        return refused;
    }
    if let Some(value) = cookie(&headers, &inner.cookie_name) {
        inner.sessions.end(value);
    }
    redirect_with_cookie(&inner, "", Duration::ZERO, is_secure(&headers))
}

/// Redirects to the console and sets its cookie.
fn redirect_with_cookie(
    inner: &ConsoleState,
    value: &str,
    life: Duration,
    secure: bool,
) -> Response {
    let secure = if secure { "; Secure" } else { "" };
    let cookie = format!(
        "{}={value}; Path={PATH}; Max-Age={}; HttpOnly; SameSite=Strict{secure}",
        inner.cookie_name,
        life.as_secs()
    );
    let mut response = see_other(PATH);
    if let Ok(cookie) = HeaderValue::from_str(&cookie) {
        response.headers_mut().insert(SET_COOKIE, cookie);
    }
    response
}

/// Renders a page on a blocking thread. With thousands of plugins this takes milliseconds, and the
/// async thread has calls to serve.
async fn render_blocking(
    inner: &Arc<ConsoleState>,
    headers: &HeaderMap,
    write: impl FnOnce(&PageContext, &ConsoleSession) -> Response + Send + 'static,
) -> Response {
    let Some(session) = read_session(inner, headers) else {
        return login_required(headers);
    };
    let inner = Arc::clone(inner);
    let writing = tokio::task::spawn_blocking(move || write(&inner.context, &session));
    writing
        .await
        .unwrap_or_else(|_| StatusCode::INTERNAL_SERVER_ERROR.into_response())
}

fn ok_page(markup: Markup) -> Response {
    page(StatusCode::OK, markup)
}

async fn overview(
    State(inner): SharedConsole,
    headers: HeaderMap,
    Query(asked): QueryValue,
) -> Response {
    render_blocking(&inner, &headers, move |desk, session| {
        ok_page(pages::overview(desk, session, action_notice(&asked)))
    })
    .await
}

async fn plugins(
    State(inner): SharedConsole,
    headers: HeaderMap,
    Query(asked): QueryValue,
) -> Response {
    render_blocking(&inner, &headers, move |desk, session| {
        ok_page(pages::plugins(desk, session, value_or_empty(&asked, "q")))
    })
    .await
}

async fn plugin(
    State(inner): SharedConsole,
    headers: HeaderMap,
    Query(asked): QueryValue,
) -> Response {
    let write = move |desk: &PageContext, session: &ConsoleSession| match desk
        .operations
        .plugin(value_or_empty(&asked, "id"))
    {
        Some(detail) => ok_page(pages::plugin(session, &detail, action_notice(&asked))),
        None => not_found_page(session, "plugin"),
    };
    render_blocking(&inner, &headers, write).await
}

async fn tools(
    State(inner): SharedConsole,
    headers: HeaderMap,
    Query(asked): QueryValue,
) -> Response {
    let from = value_or_empty(&asked, "from").parse().unwrap_or_default();
    render_blocking(&inner, &headers, move |desk, session| {
        ok_page(pages::tools(
            desk,
            session,
            value_or_empty(&asked, "q"),
            from,
        ))
    })
    .await
}

async fn tool(
    State(inner): SharedConsole,
    headers: HeaderMap,
    Query(asked): QueryValue,
) -> Response {
    let write = move |desk: &PageContext, session: &ConsoleSession| {
        let Some(detail) = desk.operations.tool(value_or_empty(&asked, "name")) else {
            return not_found_page(session, "tool");
        };
        let may_call = desk.operations.may_use(&session.viewer, &detail.row.name);
        let tried = pages::ToolTrial::unsubmitted(&detail, asked.contains_key("json"));
        ok_page(pages::tool(session, &detail, may_call, &tried))
    };
    render_blocking(&inner, &headers, write).await
}

async fn calls(
    State(inner): SharedConsole,
    headers: HeaderMap,
    Query(asked): QueryValue,
) -> Response {
    let failed = asked.contains_key("failed");
    render_blocking(&inner, &headers, move |desk, session| {
        ok_page(pages::calls(
            desk,
            session,
            value_or_empty(&asked, "q"),
            failed,
        ))
    })
    .await
}

async fn denied(State(inner): SharedConsole, headers: HeaderMap) -> Response {
    render_blocking(&inner, &headers, |desk, session| {
        ok_page(pages::denied(desk, session))
    })
    .await
}

async fn approvals(
    State(inner): SharedConsole,
    headers: HeaderMap,
    Query(asked): QueryValue,
) -> Response {
    render_blocking(&inner, &headers, move |desk, session| {
        ok_page(pages::approvals(desk, session, action_notice(&asked)))
    })
    .await
}

async fn audit(State(inner): SharedConsole, headers: HeaderMap) -> Response {
    if read_session(&inner, &headers).is_none() {
        return login_required(&headers);
    }
    let lines = inner
        .context
        .operations
        .audit_lines(pages::MAX_AUDIT_LINES)
        .await;
    render_blocking(&inner, &headers, move |_, session| {
        ok_page(pages::audit(session, lines.as_ref()))
    })
    .await
}

async fn log(
    State(inner): SharedConsole,
    headers: HeaderMap,
    Query(asked): QueryValue,
) -> Response {
    render_blocking(&inner, &headers, move |desk, session| {
        ok_page(pages::log(desk, session, value_or_empty(&asked, "q")))
    })
    .await
}

/// Calls a tool with the submitted arguments.
async fn call_tool(
    State(inner): SharedConsole,
    request: extract::Request,
) -> Result<Response, Response> {
    let (session, form) = check_state_change(&inner, request, MAX_ARGUMENTS_FORM_BYTES).await?;
    let name = value_or_empty(&form, "tool");
    let Some(detail) = inner.context.operations.tool(name) else {
        return Ok(not_found_page(&session, "tool"));
    };
    let may_call = inner.context.operations.may_use(&session.viewer, name);
    let tried = if may_call {
        pages::ToolTrial::call(&*inner.context.operations, &session, &detail, form).await
    } else {
        pages::ToolTrial::unsubmitted(&detail, form.contains_key("raw"))
    };
    let status = if may_call {
        StatusCode::OK
    } else {
        StatusCode::FORBIDDEN
    };
    let writing = tokio::task::spawn_blocking(move || {
        page(status, pages::tool(&session, &detail, may_call, &tried))
    });
    Ok(writing
        .await
        .unwrap_or_else(|_| StatusCode::INTERNAL_SERVER_ERROR.into_response()))
}

/// Suspends or resumes a plugin.
async fn set_plugin_suspended(
    State(inner): SharedConsole,
    request: extract::Request,
) -> Result<Response, Response> {
    let (session, form) = check_state_change(&inner, request, MAX_SMALL_FORM_BYTES).await?;
    let (id, disabled) = (
        value_or_empty(&form, "id"),
        value_or_empty(&form, "disabled") == "yes",
    );
    if !inner
        .context
        .operations
        .set_suspended(&session.viewer, id, disabled)
    {
        return Ok(not_found_page(&session, "plugin"));
    }
    let done = if disabled { "disabled" } else { "enabled" };
    tracing::info!(
        viewer = session.viewer.name,
        plugin = id,
        "console: the plugin was {done}"
    );
    Ok(see_other(&format!(
        "{PATH}/plugin?{}",
        encode_query(&[("id", id), ("done", done)])
    )))
}

/// Approves or declines a waiting call.
async fn answer_approval(
    State(inner): SharedConsole,
    request: extract::Request,
) -> Result<Response, Response> {
    let (session, form) = check_state_change(&inner, request, MAX_SMALL_FORM_BYTES).await?;
    let yes = match value_or_empty(&form, "answer") {
        "approve" => true,
        "decline" => false,
        _ => {
            return Err(rejection_page(
                StatusCode::BAD_REQUEST,
                "The form has neither yes nor no.",
            ));
        }
    };
    let id = value_or_empty(&form, "id").parse().unwrap_or_default();
    match inner
        .context
        .operations
        .answer_approval(&session.viewer, id, yes)
        .await
    {
        ended
        @ (ApprovalOutcome::Done | ApprovalOutcome::Outdated | ApprovalOutcome::Suspended) => {
            let done = if yes { "approved" } else { "declined" };
            tracing::info!(
                viewer = session.viewer.name,
                "console: a call that waited was {done}"
            );
            let told = match ended {
                ApprovalOutcome::Outdated => "outdated",
                ApprovalOutcome::Suspended => "plugin-disabled",
                _ => done,
            };
            Ok(see_other(&format!("{PATH}/approvals?done={told}")))
        }
        ApprovalOutcome::Gone => Ok(page(StatusCode::CONFLICT, pages::too_late(&session))),
        ApprovalOutcome::Forbidden => Err(rejection_page(
            StatusCode::FORBIDDEN,
            "Your token may not call this tool, so it cannot allow a call of it either.",
        )),
    }
}

/// Empties the compile cache.
async fn clear_cache(
    State(inner): SharedConsole,
    request: extract::Request,
) -> Result<Response, Response> {
    let (session, _) = check_state_change(&inner, request, MAX_SMALL_FORM_BYTES).await?;
    let done = match inner.context.operations.clear_cache(&session.viewer).await {
        Ok(cleared) => {
            let (components, bytes) = (cleared.components, cleared.bytes);
            tracing::info!(
                viewer = session.viewer.name,
                components,
                bytes,
                "console: the compile cache was cleared"
            );
            "cleared"
        }
        Err(why) => {
            tracing::warn!(
                viewer = session.viewer.name,
                "console: the compile cache could not be cleared: {why}"
            );
            "uncleared"
        }
    };
    Ok(see_other(&format!("{PATH}?done={done}")))
}

fn not_found_page(session: &ConsoleSession, what: &str) -> Response {
    page(StatusCode::NOT_FOUND, pages::not_found(session, what))
}

/// Returns the notice after a form was submitted. Only these fixed texts can appear, so a crafted
/// URL cannot place text on a page.
fn action_notice(asked: &FieldValues) -> Option<&'static str> {
    Some(match value_or_empty(asked, "done") {
        "disabled" => {
            "The plugin is disabled: it rejects all calls until you enable it, or until it is loaded again."
        }
        "enabled" => "The plugin is enabled: it serves calls again, those of all callers.",
        "approved" => {
            "You have allowed the call. It continues, and the question is withdrawn from the client."
        }
        "outdated" => {
            "You have allowed the call, but its plugin or grant has changed since it was asked for. So it fails, and its client \
             can call again. The question is withdrawn from the client."
        }
        "plugin-disabled" => {
            "You have allowed the call, but its plugin is disabled. So it is rejected. The question is withdrawn from the client."
        }
        "declined" => {
            "You have declined the call. It has failed, and the question is withdrawn from the client."
        }
        "cleared" => {
            "The compile cache was cleared. Components are compiled again when they are needed."
        }
        "uncleared" => "The compile cache could not be cleared. The log states the reason.",
        _ => return None,
    })
}

fn value_or_empty<'a>(values: &'a FieldValues, name: &str) -> &'a str {
    values.get(name).map(String::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests;
