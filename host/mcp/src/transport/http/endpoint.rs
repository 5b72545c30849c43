//! `/mcp`: finds or creates the session that responds to a request, and handles stateless requests.

use std::sync::Arc;

use axum::extract::{Extension, Request as HttpRequest, State};
use axum::response::{IntoResponse as _, Response};
use http::header::ALLOW;
use http::{HeaderMap, HeaderValue, StatusCode};
use serde::Deserialize;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::app_state::{HttpState, RequestBody, read_body};
use super::event::COMMENT_EVENT;
use super::headers::{self, ErrorId, SESSION_ID};
use super::options::HttpOptions;
use super::peer::HttpPeer;
use super::post_response::{
    StreamResumption, error_response, event_stream, respond, respond_single,
    respond_without_stream, stream_required, unavailable_response,
};
use super::reauthorization::CallerTrust;
use super::session_messages;
use super::sessions::{self, HttpSession};
use super::unauthorized::AuthDenial;
use crate::dispatch::dispatcher;
use crate::dispatch::methods::ping;
use crate::exchange::outbox::{self, OutgoingMessage};
use crate::host::caller::Caller;
use crate::protocol::jsonrpc::{
    self, Error, INVALID_REQUEST, IncomingContent, METHOD_NOT_FOUND, Message, PARSE_ERROR, Request,
    RequestId,
};
use crate::protocol::message_context::{RequestContext, missing_session, unsupported_version};
use crate::protocol::method::McpMethod;
use crate::protocol::revision::Revision;
use crate::session::client_session::{Session, SessionChannel, SessionLife};

pub(super) async fn post(
    State(app): State<Arc<HttpState>>,
    Extension(caller): Extension<Arc<Caller>>,
    Extension(trust): Extension<CallerTrust>,
    Extension(peer): Extension<HttpPeer>,
    request: HttpRequest,
) -> Response {
    let (parts, payload) = request.into_parts();
    let headers = parts.headers;
    let id = ErrorId::of(&headers);
    // The specification requires that a client lists both. Errors are JSON, and so is the response
    // to most requests, so a client that refuses JSON gets none of them as a stream.
    if !headers::accepts(&headers, &mime::APPLICATION_JSON) {
        let what = "the Accept header does not allow application/json: send Accept: application/json, text/event-stream";
        return error_response(
            StatusCode::NOT_ACCEPTABLE,
            &Error::new(INVALID_REQUEST, what),
            id,
        );
    }
    let streams = headers::accepts(&headers, &mime::TEXT_EVENT_STREAM);
    if let Err(error) = headers::check_unambiguous(&headers) {
        return error_response(StatusCode::BAD_REQUEST, &error, id);
    }
    if headers::is_encoded(&headers) {
        let what = "the body must not be compressed: Content-Encoding must be identity or absent";
        return error_response(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            &Error::new(INVALID_REQUEST, what),
            id,
        );
    }
    if !headers::is_json(&headers) {
        let what = "the Content-Type must be application/json";
        return error_response(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            &Error::new(INVALID_REQUEST, what),
            id,
        );
    }
    let payload = match read_body(&app, &caller, payload, id).await {
        Ok(payload) => payload,
        Err(response) => return response,
    };
    // A client can take a long time to send a body.
    let (caller, trust) =
        match app
            .gate
            .authenticate_again((caller, trust), &headers, peer.source, &*app.host)
        {
            Ok(authenticated) => authenticated,
            Err(denied) => return app.reject(peer.source, &denied),
        };
    let length = payload.bytes.len();
    let received = Instant::now();
    let revoked = caller.revoked.clone();
    let answering = async {
        let accepting = accept_body(
            Arc::clone(&app),
            caller,
            trust,
            peer.clone(),
            headers,
            payload,
        );
        let accepted = app.lane.run(length, accepting).await;
        accepted
            .respond(
                &app.options,
                received,
                &peer.half_closed,
                streams.then_some(()).ok_or(id),
            )
            .await
    };
    tokio::select! {
        biased;
        () = revoked.cancelled() => {
            app.gate.challenge(&AuthDenial::Invalid("it was removed, or its rights changed, while the request ran"))
        }
        response = answering => response,
    }
}

/// Parses a body and starts its request. The call copies what it needs; nothing of the body stays
/// in memory while it runs.
async fn accept_body(
    app: Arc<HttpState>,
    caller: Arc<Caller>,
    trust: CallerTrust,
    peer: HttpPeer,
    headers: HeaderMap,
    payload: RequestBody,
) -> AcceptedRequest {
    match jsonrpc::decode(&payload.bytes) {
        Ok(IncomingContent::Single(Message::Request(request))) => {
            handle_request(&app, caller, trust, &peer, &headers, request).await
        }
        Ok(IncomingContent::Single(_)) if is_stateless(&headers) || !app.has_sessions() => {
            AcceptedRequest::Done(StatusCode::ACCEPTED.into_response())
        }
        Ok(incoming) => handle_with_sessions(&app, caller, &headers, incoming).await,
        Err(error) => AcceptedRequest::Done(error_response(
            StatusCode::BAD_REQUEST,
            &error,
            ErrorId::of(&headers),
        )),
    }
}

/// A request whose body has been accepted.
enum AcceptedRequest {
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

/// Mapping from error codes of rejected requests to HTTP statuses.
#[derive(Clone, Copy)]
enum StatusMap {
    /// For sessions.
    Legacy,
    /// For stateless requests. If `not_found` is set, an unknown method is 404.
    Stateless { not_found: bool },
}

impl StatusMap {
    fn status(self, code: i32) -> StatusCode {
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
    async fn respond(
        self,
        options: &HttpOptions,
        received: Instant,
        half_closed: &CancellationToken,
        streams: Result<(), ErrorId>,
    ) -> Response {
        match self {
            Self::Done(response) => response,
            Self::Waiting {
                messages,
                guard,
                statuses,
                is_stream,
                ..
            } if let Err(id) = streams => {
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
fn stream_resumption(
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
        opens,
        closes,
    }
}

async fn handle_request(
    app: &Arc<HttpState>,
    caller: Arc<Caller>,
    trust: CallerTrust,
    peer: &HttpPeer,
    headers: &HeaderMap,
    request: Request<'_>,
) -> AcceptedRequest {
    if let Some(denied) = missing_scopes(app, &caller, &request) {
        if app
            .rejections
            .needs_line(&peer.source.network(), denied.reason())
        {
            tracing::info!(caller = caller.name, "request rejected: {denied}");
        }
        return AcceptedRequest::Done(app.gate.challenge(&denied));
    }
    let stated = RequestContext::from_params(request.params);
    match stated {
        Ok(None) if request.method == McpMethod::Initialize.name() => {
            AcceptedRequest::Done(create_session(app, caller, peer, request).await)
        }
        Ok(None) if !is_stateless(headers) => {
            handle_with_sessions(
                app,
                caller,
                headers,
                IncomingContent::Single(Message::Request(request)),
            )
            .await
        }
        stated => handle_stateless(app, caller, trust, headers, request, stated).await,
    }
}

/// Returns the denial with the scopes that a caller lacks for the tool that it calls, if `step_up`
/// is on.
fn missing_scopes(app: &HttpState, caller: &Caller, request: &Request<'_>) -> Option<AuthDenial> {
    #[derive(Deserialize)]
    struct CalledMethod {
        name: String,
    }
    let options = app.gate.oauth()?.options();
    if !options.step_up || request.method != McpMethod::CallTool.name() || !caller.has_oauth_token()
    {
        return None;
    }
    let CalledMethod { name } = serde_json::from_str(request.params?.get()).ok()?;
    if caller.may_use(&name) {
        return None;
    }
    app.host.tool(&name)?;
    let scopes = options.scopes_of(&name);
    (!scopes.is_empty()).then_some(AuthDenial::StepUp(scopes))
}

/// Returns whether the headers belong to a stateless request.
fn is_stateless(headers: &HeaderMap) -> bool {
    let version = headers
        .get(headers::PROTOCOL_VERSION)
        .and_then(|value| value.to_str().ok());
    let version = version.map(Revision::parse);
    match version {
        None => false,
        Some(Some(revision)) => !revision.features().sessions,
        Some(None) => !headers.contains_key(SESSION_ID),
    }
}

/// Handles a stateless request: its session ends with the response.
async fn handle_stateless(
    app: &Arc<HttpState>,
    caller: Arc<Caller>,
    trust: CallerTrust,
    headers: &HeaderMap,
    request: Request<'_>,
    stated: Result<Option<RequestContext>, Error>,
) -> AcceptedRequest {
    let errors = ErrorId::of(headers);
    let refused = |error: Error| {
        AcceptedRequest::Done(error_response(
            StatusCode::BAD_REQUEST,
            &error.with_id(&request.id),
            errors,
        ))
    };
    // A `ping` needs no protocol version.
    if matches!(stated, Ok(None)) && request.method == McpMethod::Ping.name() {
        let answer = match ping::answer(request.params) {
            Ok(result) => OutgoingMessage::response(jsonrpc::result(&request.id, &result)),
            Err(error) => {
                let error = error.with_id(&request.id);
                OutgoingMessage::rejection(
                    jsonrpc::error(&error, errors == ErrorId::Null),
                    error.code,
                )
            }
        };
        return AcceptedRequest::Done(respond_single(answer, legacy_status));
    }
    let repeats = stated.as_ref().is_ok_and(|stated| {
        stated
            .as_ref()
            .is_none_or(|rules| rules.revision.features().http_headers)
    });
    if (repeats || stated.is_err())
        && let Err(error) = headers::check_against_body(headers, &request, &*app.host, &caller)
    {
        return refused(error);
    }
    let rules = match stated {
        Ok(Some(rules)) => RequestContext {
            trace: headers::trace_context(headers).map(Box::new),
            ..rules
        },
        Ok(None) => return refused(missing_session()),
        Err(error) => return refused(error),
    };
    // A client cancels the request by closing the stream.
    let life = SessionLife {
        ended: app.life.ended.child_token(),
        ..app.life.clone()
    };
    let guard = life.ended.clone().drop_guard();
    let not_found = rules.revision.features().http_not_found;
    let is_stream = request.method == McpMethod::Listen.name();
    if is_stream {
        let ended = life.ended.clone();
        tokio::spawn(async move {
            ended.run_until_cancelled(trust.wait_until_invalid()).await;
            ended.cancel();
        });
    }
    let intake = Arc::clone(&app.intake);
    let session = Session::new(
        Arc::clone(&app.host),
        Arc::clone(&caller),
        intake,
        SessionChannel::PerRequest,
        life,
    );
    let (outbox, messages) = outbox::channel();
    dispatcher::handle_request(&session, &caller, request, Ok(Some(rules)), &outbox).await;
    drop(outbox);
    let statuses = StatusMap::Stateless { not_found };
    AcceptedRequest::Waiting {
        messages,
        guard: Some(guard),
        session: None,
        statuses,
        is_stream,
    }
}

/// Creates a session.
async fn create_session(
    app: &Arc<HttpState>,
    caller: Arc<Caller>,
    peer: &HttpPeer,
    request: Request<'_>,
) -> Response {
    let (id, intake) = (request.id.clone(), Arc::clone(&app.intake));
    let life = app.life.child();
    let channel = if app.has_sessions() {
        SessionChannel::PerRequest
    } else {
        SessionChannel::OneRequest
    };
    let session = Session::new(
        Arc::clone(&app.host),
        Arc::clone(&caller),
        intake,
        channel,
        life,
    );
    let (outbox, messages) = outbox::channel();
    dispatcher::handle_request(&session, &caller, request, Ok(None), &outbox).await;
    drop(outbox);
    let Some(answer) = messages.recv().await else {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    let mut response = respond_single(answer, legacy_status);
    if session.negotiated.borrow().revision.is_none() || channel == SessionChannel::OneRequest {
        return response;
    }
    let Ok(name) = sessions::new_id() else {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    let Ok(value) = HeaderValue::try_from(&name) else {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    if !app.sessions.insert(name, session, peer.source) {
        let what = "too many sessions are open, and this caller has none that is idle; retry later";
        return unavailable_response(
            &Error::new(INVALID_REQUEST, what).with_id(&id),
            ErrorId::Null,
        );
    }
    response.headers_mut().insert(SESSION_ID, value);
    response
}

/// Handles messages of a revision with sessions.
async fn handle_with_sessions(
    app: &Arc<HttpState>,
    caller: Arc<Caller>,
    headers: &HeaderMap,
    incoming: IncomingContent<'_>,
) -> AcceptedRequest {
    if app.has_sessions() {
        handle_in_session(app, caller, headers, incoming).await
    } else {
        handle_without_session(app, caller, headers, incoming).await
    }
}

/// Handles messages of a revision with sessions when sessions are off: only the responses remain.
/// Only the header states the revision.
async fn handle_without_session(
    app: &Arc<HttpState>,
    caller: Arc<Caller>,
    headers: &HeaderMap,
    incoming: IncomingContent<'_>,
) -> AcceptedRequest {
    let revision = match headers
        .get(headers::PROTOCOL_VERSION)
        .map(|value| value.to_str().unwrap_or_default())
    {
        None => Revision::WITHOUT_HEADER,
        Some(version) => {
            let known = Revision::parse(version).filter(|revision| revision.features().sessions);
            let Some(known) = known else {
                let error = Error {
                    id: incoming.id().cloned(),
                    ..unsupported_version(version)
                };
                return AcceptedRequest::Done(error_response(
                    StatusCode::BAD_REQUEST,
                    &error,
                    ErrorId::of(headers),
                ));
            };
            known
        }
    };
    // A client that has disconnected could neither cancel its calls nor receive their results.
    let life = app.life.child();
    let guard = life.ended.clone().drop_guard();
    let intake = Arc::clone(&app.intake);
    let session = Session::new(
        Arc::clone(&app.host),
        Arc::clone(&caller),
        intake,
        SessionChannel::OneRequest,
        life,
    );
    session.negotiated.send_modify(|negotiated| {
        negotiated.revision = Some(revision);
        negotiated.initialized = true;
    });
    handle_messages(&session, caller, headers, incoming, (Some(guard), None)).await
}

/// Handles messages of a session.
async fn handle_in_session(
    app: &Arc<HttpState>,
    caller: Arc<Caller>,
    headers: &HeaderMap,
    incoming: IncomingContent<'_>,
) -> AcceptedRequest {
    let entry = match find_session(app, &caller, headers, incoming.id()) {
        Ok(entry) => entry,
        Err(response) => return AcceptedRequest::Done(*response),
    };
    handle_messages(
        &entry.session,
        caller,
        headers,
        incoming,
        (None, Some(Arc::clone(&entry))),
    )
    .await
}

/// Handles messages in `find_session`. It ends with its guard, when the response has been received,
/// or it is in the table.
async fn handle_messages(
    session: &Arc<Session>,
    caller: Arc<Caller>,
    headers: &HeaderMap,
    incoming: IncomingContent<'_>,
    (guard, entry): (Option<DropGuard>, Option<Arc<HttpSession>>),
) -> AcceptedRequest {
    let asks = incoming.needs_response();
    let (outbox, messages) = outbox::channel();
    match incoming {
        IncomingContent::Single(Message::Request(request)) => {
            let rules = session.request_context(request.params);
            let rules = rules.map(|rules| {
                rules.map(|rules| RequestContext {
                    trace: headers::trace_context(headers).map(Box::new),
                    ..rules
                })
            });
            dispatcher::handle_request(session, &caller, request, rules, &outbox).await;
        }
        incoming => dispatcher::receive(session, &caller, Ok(incoming), &outbox).await,
    }
    drop(outbox);
    if asks {
        let session = entry.map(|entry| (entry, caller));
        return AcceptedRequest::Waiting {
            messages,
            guard,
            session,
            statuses: StatusMap::Legacy,
            is_stream: false,
        };
    }
    AcceptedRequest::Done(notification_response(messages).await)
}

/// Returns the response to notifications: 202, unless they are rejected.
async fn notification_response(messages: outbox::OutboxReceiver) -> Response {
    match messages.recv().await {
        Some(refused) if refused.kind.is_response() => respond_single(refused, legacy_status),
        _ => StatusCode::ACCEPTED.into_response(),
    }
}

fn legacy_status(code: i32) -> StatusCode {
    if matches!(code, PARSE_ERROR | INVALID_REQUEST) {
        StatusCode::BAD_REQUEST
    } else {
        StatusCode::OK
    }
}

fn session_id(headers: &HeaderMap) -> Option<&str> {
    headers
        .get(SESSION_ID)
        .and_then(|value| value.to_str().ok())
}

/// Returns the session named in the headers.
fn find_session(
    app: &HttpState,
    caller: &Caller,
    headers: &HeaderMap,
    id: Option<&RequestId>,
) -> Result<Arc<HttpSession>, Box<Response>> {
    let about = id.cloned();
    let of = |error: Error| Error {
        id: about.clone(),
        ..error
    };
    let errors = ErrorId::of(headers);
    let refused = |status, what: &str| {
        Box::new(error_response(
            status,
            &of(Error::new(INVALID_REQUEST, what)),
            errors,
        ))
    };
    let version = headers
        .get(headers::PROTOCOL_VERSION)
        .map(|value| value.to_str().unwrap_or_default());
    if let Some(version) = version
        && Revision::parse(version).is_none_or(|revision| !revision.features().sessions)
    {
        return Err(Box::new(error_response(
            StatusCode::BAD_REQUEST,
            &of(unsupported_version(version)),
            errors,
        )));
    }
    let id = session_id(headers).ok_or_else(|| {
        refused(
            StatusCode::BAD_REQUEST,
            "the Mcp-Session-Id header is missing: send the value returned by initialize",
        )
    })?;
    let gone = || {
        refused(
            StatusCode::NOT_FOUND,
            "unknown session; send initialize again",
        )
    };
    app.sessions.get(id, caller).ok_or_else(gone)
}

/// Returns the response to an HTTP method that only sessions support.
fn post_only() -> Response {
    (
        StatusCode::METHOD_NOT_ALLOWED,
        [(ALLOW, HeaderValue::from_static("POST"))],
    )
        .into_response()
}

/// Opens the stream of a session for messages that belong to no request.
pub(super) async fn get(
    State(app): State<Arc<HttpState>>,
    Extension(caller): Extension<Arc<Caller>>,
    Extension(trust): Extension<CallerTrust>,
    Extension(peer): Extension<HttpPeer>,
    headers: HeaderMap,
) -> Response {
    if is_stateless(&headers) || !app.has_sessions() {
        return post_only();
    }
    if let Err(error) = headers::check_unambiguous(&headers) {
        return error_response(StatusCode::BAD_REQUEST, &error, ErrorId::of(&headers));
    }
    if !headers::accepts(&headers, &mime::TEXT_EVENT_STREAM) {
        let what =
            "the Accept header does not allow text/event-stream: send Accept: text/event-stream";
        return error_response(
            StatusCode::NOT_ACCEPTABLE,
            &Error::new(INVALID_REQUEST, what),
            ErrorId::of(&headers),
        );
    }
    let entry = match find_session(&app, &caller, &headers, None) {
        Ok(entry) => entry,
        Err(response) => return *response,
    };
    match headers::last_event_id(&headers) {
        Some(id) if id.stream != session_messages::NEWS_STREAM_ID => {
            let closes =
                stream_resumption(&entry, Arc::clone(&caller), &app.options, Instant::now()).closes;
            let Some(reader) = entry.responses.resume(&caller, id, closes) else {
                let what = "the stream of Last-Event-ID is no longer stored (http.resume), or not for this caller: repeat the \
                            request, or open a stream without that header";
                let error = Error::new(INVALID_REQUEST, what);
                return error_response(StatusCode::BAD_REQUEST, &error, ErrorId::of(&headers));
            };
            event_stream(Some(COMMENT_EVENT), reader, app.options.stream_keep_alive)
        }
        last => {
            let (outbox, messages) = outbox::channel();
            let news = entry
                .news
                .read(last.map(|id| id.event), &caller.rights, messages);
            let opens =
                stream_resumption(&entry, Arc::clone(&caller), &app.options, Instant::now()).opens;
            tokio::spawn(entry.serve_stream(
                caller.rights.clone(),
                trust,
                peer.half_closed,
                outbox,
            ));
            let opening = if opens { news.opening() } else { COMMENT_EVENT };
            event_stream(Some(opening), news, app.options.stream_keep_alive)
        }
    }
}

/// Ends a session.
pub(super) async fn delete(
    State(app): State<Arc<HttpState>>,
    Extension(caller): Extension<Arc<Caller>>,
    headers: HeaderMap,
) -> Response {
    if is_stateless(&headers) || !app.has_sessions() {
        return post_only();
    }
    if let Err(error) = headers::check_unambiguous(&headers) {
        return error_response(StatusCode::BAD_REQUEST, &error, ErrorId::of(&headers));
    }
    match find_session(&app, &caller, &headers, None) {
        Ok(_) => {
            app.sessions
                .remove(session_id(&headers).unwrap_or_default(), &caller);
            StatusCode::NO_CONTENT.into_response()
        }
        Err(response) => *response,
    }
}
