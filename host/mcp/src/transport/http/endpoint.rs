//! `/mcp`: handles the HTTP methods, and decides whether a message belongs to a session.

use std::sync::Arc;

use axum::extract::{Extension, Request as HttpRequest, State};
use axum::response::{IntoResponse as _, Response};
use http::header::ALLOW;
use http::{HeaderMap, HeaderValue, StatusCode};
use serde::Deserialize;
use tokio::time::Instant;

use super::accepted_request::{AcceptedRequest, ResponseForm, stream_resumption};
use super::app_state::{HttpState, RequestBody, read_body};
use super::auth_denial::AuthDenial;
use super::credential_validity::CredentialValidity;
use super::event::COMMENT_EVENT;
use super::headers::{self, ErrorId};
use super::peer::HttpPeer;
use super::post_response::{error_response, event_stream};
use super::session_request::{self, create_session, find_session, session_id};
use super::standalone_messages;
use super::stateless_request::{handle_stateless, is_stateless};
use crate::exchange::outbox;
use crate::host::caller::Caller;
use crate::protocol::jsonrpc::{self, Error, INVALID_REQUEST, IncomingContent, Message, Request};
use crate::protocol::message_context::RequestContext;
use crate::protocol::method::McpMethod;

/// Handles a message.
pub(super) async fn post(
    State(app): State<Arc<HttpState>>,
    Extension(caller): Extension<Arc<Caller>>,
    Extension(trust): Extension<CredentialValidity>,
    Extension(peer): Extension<HttpPeer>,
    request: HttpRequest,
) -> Response {
    let (parts, payload) = request.into_parts();
    let headers = parts.headers;
    let id = ErrorId::of(&headers);
    if let Err(response) = check_message_headers(&headers, id) {
        return *response;
    }
    let form = if headers::accepts(&headers, &mime::TEXT_EVENT_STREAM) {
        ResponseForm::Any
    } else {
        ResponseForm::Json(id)
    };
    let payload = match read_body(&app, &caller, payload, id).await {
        Ok(payload) => payload,
        Err(response) => return response,
    };
    // A client can take a long time to send a body.
    let (caller, trust) = match app.gate.authenticate_again(
        (caller, trust),
        &headers,
        peer.source,
        app.server.calls(),
    ) {
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
        let accepted = app.body_workers.run(length, accepting).await;
        accepted
            .respond(&app.options, received, &peer.half_closed, form)
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

/// Checks the headers of a message. An error has this id.
fn check_message_headers(headers: &HeaderMap, id: ErrorId) -> Result<(), Box<Response>> {
    let refused = |status, error: &Error| Err(Box::new(error_response(status, error, id)));
    // The specification requires clients to list both types. A client that refuses JSON is
    // rejected, because errors and most responses are JSON and are not sent as a stream instead.
    if !headers::accepts(headers, &mime::APPLICATION_JSON) {
        let what = "the Accept header does not allow application/json: send Accept: application/json, text/event-stream";
        return refused(
            StatusCode::NOT_ACCEPTABLE,
            &Error::new(INVALID_REQUEST, what),
        );
    }
    if let Err(error) = headers::check_unambiguous(headers) {
        return refused(StatusCode::BAD_REQUEST, &error);
    }
    if headers::is_encoded(headers) {
        let what = "the body must not be compressed: Content-Encoding must be identity or absent";
        return refused(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            &Error::new(INVALID_REQUEST, what),
        );
    }
    if !headers::is_json(headers) {
        let what = "the Content-Type must be application/json";
        return refused(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            &Error::new(INVALID_REQUEST, what),
        );
    }
    Ok(())
}

/// Parses a body and starts its request. The call copies what it needs; nothing of the body stays
/// in memory while it runs.
async fn accept_body(
    app: Arc<HttpState>,
    caller: Arc<Caller>,
    trust: CredentialValidity,
    peer: HttpPeer,
    headers: HeaderMap,
    payload: RequestBody,
) -> AcceptedRequest {
    let request = match jsonrpc::decode(&payload.bytes) {
        Ok(IncomingContent::Single(Message::Request(request))) => request,
        Ok(IncomingContent::Single(_)) if is_stateless(&headers) || !app.has_sessions() => {
            return AcceptedRequest::Done(StatusCode::ACCEPTED.into_response());
        }
        Ok(incoming) => {
            return session_request::handle_messages(&app, caller, &headers, incoming).await;
        }
        Err(error) => {
            return AcceptedRequest::Done(error_response(
                StatusCode::BAD_REQUEST,
                &error,
                ErrorId::of(&headers),
            ));
        }
    };
    if let Some(denied) = missing_scopes(&app, &caller, &request) {
        if app
            .rejections
            .needs_line(&peer.source.network(), denied.reason())
        {
            tracing::info!(caller = caller.name, "request rejected: {denied}");
        }
        return AcceptedRequest::Done(app.gate.challenge(&denied));
    }
    match RequestContext::from_params(request.params) {
        Ok(None) if request.method == McpMethod::Initialize.name() => {
            AcceptedRequest::Done(create_session(&app, caller, &peer, request).await)
        }
        Ok(None) if !is_stateless(&headers) => {
            let message = IncomingContent::Single(Message::Request(request));
            session_request::handle_messages(&app, caller, &headers, message).await
        }
        context => handle_stateless(&app, caller, trust, &headers, request, context).await,
    }
}

/// Returns the denial with the scopes that a caller lacks for the tool that it calls, if `step_up`
/// is on.
fn missing_scopes(app: &HttpState, caller: &Caller, request: &Request<'_>) -> Option<AuthDenial> {
    #[derive(Deserialize)]
    struct CalledTool {
        name: String,
    }
    let options = app.gate.oauth()?.options();
    if !options.step_up || request.method != McpMethod::CallTool.name() || !caller.has_oauth_token()
    {
        return None;
    }
    let CalledTool { name } = serde_json::from_str(request.params?.get()).ok()?;
    if caller.may_use(&name) {
        return None;
    }
    app.server.lists().tool(&name)?;
    let scopes = options.scopes_of(&name);
    (!scopes.is_empty()).then_some(AuthDenial::StepUp(scopes))
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
    Extension(trust): Extension<CredentialValidity>,
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
        Some(id) if id.stream != standalone_messages::STANDALONE_STREAM_ID => {
            let closes =
                stream_resumption(&entry, Arc::clone(&caller), &app.options, Instant::now())
                    .ends_at;
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
                stream_resumption(&entry, Arc::clone(&caller), &app.options, Instant::now())
                    .sends_opening;
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
