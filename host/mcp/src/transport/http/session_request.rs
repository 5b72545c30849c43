//! Requests of the revisions with sessions: creates sessions, and finds the session of a message.

use std::sync::Arc;

use axum::response::{IntoResponse as _, Response};
use http::{HeaderMap, HeaderValue, StatusCode};
use tokio_util::sync::DropGuard;

use super::accepted_request::{AcceptedRequest, StatusMap, legacy_status};
use super::app_state::HttpState;
use super::headers::{self, ErrorId, SESSION_ID};
use super::peer::HttpPeer;
use super::post_response::{error_response, respond_single, unavailable_response};
use super::sessions::{self, HttpSession};
use crate::dispatch::dispatcher;
use crate::exchange::outbox;
use crate::host::caller::Caller;
use crate::protocol::jsonrpc::{
    Error, INVALID_REQUEST, IncomingContent, Message, Request, RequestId,
};
use crate::protocol::message_context::{RequestContext, unsupported_version};
use crate::protocol::revision::Revision;
use crate::session::client_session::{Session, SessionChannel};

/// Creates a session.
pub(super) async fn create_session(
    app: &Arc<HttpState>,
    caller: Arc<Caller>,
    peer: &HttpPeer,
    request: Request<'_>,
) -> Response {
    let id = request.id.clone();
    let intake = Arc::clone(&app.intake);
    let life = app.life.child();
    let channel = if app.has_sessions() {
        SessionChannel::PerRequest
    } else {
        SessionChannel::OneRequest
    };
    let session = Session::new(
        Arc::clone(&app.server),
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

/// The session that handles the messages of a body.
enum MessageSession {
    /// It is in the table, and outlives the request.
    Stored(Arc<HttpSession>),
    /// Sessions are off: it ends with its guard, when the response has been received.
    OneRequest(Arc<Session>, DropGuard),
}

/// Handles messages of a revision with sessions.
pub(super) async fn handle_messages(
    app: &Arc<HttpState>,
    caller: Arc<Caller>,
    headers: &HeaderMap,
    incoming: IncomingContent<'_>,
) -> AcceptedRequest {
    let found = if app.has_sessions() {
        find_session(app, &caller, headers, incoming.id()).map(MessageSession::Stored)
    } else {
        start_one_request(app, &caller, headers, incoming.id())
    };
    let found = match found {
        Ok(found) => found,
        Err(response) => return AcceptedRequest::Done(*response),
    };
    let session = match &found {
        MessageSession::Stored(entry) => &entry.session,
        MessageSession::OneRequest(session, _guard) => session,
    };
    let asks = incoming.needs_response();
    let (outbox, messages) = outbox::channel();
    match incoming {
        IncomingContent::Single(Message::Request(request)) => {
            let context = session.request_context(request.params);
            let rules = context.map(|rules| {
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
        let (guard, session) = match found {
            MessageSession::Stored(entry) => (None, Some((entry, caller))),
            MessageSession::OneRequest(_session, guard) => (Some(guard), None),
        };
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

/// Starts a session that ends with the response, because sessions are off. Only the header states
/// the revision.
fn start_one_request(
    app: &HttpState,
    caller: &Arc<Caller>,
    headers: &HeaderMap,
    id: Option<&RequestId>,
) -> Result<MessageSession, Box<Response>> {
    let revision = match headers
        .get(headers::PROTOCOL_VERSION)
        .map(|value| value.to_str().unwrap_or_default())
    {
        None => Revision::WITHOUT_HEADER,
        Some(version) => {
            let known = Revision::parse(version).filter(|revision| revision.features().sessions);
            let Some(known) = known else {
                let error = Error {
                    id: id.cloned(),
                    ..unsupported_version(version)
                };
                return Err(Box::new(error_response(
                    StatusCode::BAD_REQUEST,
                    &error,
                    ErrorId::of(headers),
                )));
            };
            known
        }
    };
    // A client that has disconnected could neither cancel its calls nor receive their results.
    let life = app.life.child();
    let guard = life.ended.clone().drop_guard();
    let intake = Arc::clone(&app.intake);
    let session = Session::new(
        Arc::clone(&app.server),
        Arc::clone(caller),
        intake,
        SessionChannel::OneRequest,
        life,
    );
    session.negotiated.send_modify(|negotiated| {
        negotiated.revision = Some(revision);
        negotiated.is_initialized = true;
    });
    Ok(MessageSession::OneRequest(session, guard))
}

/// Returns the response to notifications: 202, unless they are rejected.
async fn notification_response(messages: outbox::OutboxReceiver) -> Response {
    match messages.recv().await {
        Some(refused) if refused.kind.is_response() => respond_single(refused, legacy_status),
        _ => StatusCode::ACCEPTED.into_response(),
    }
}

/// Returns the id of the session in the headers.
pub(super) fn session_id(headers: &HeaderMap) -> Option<&str> {
    headers
        .get(SESSION_ID)
        .and_then(|value| value.to_str().ok())
}

/// Returns the session named in the headers.
pub(super) fn find_session(
    app: &HttpState,
    caller: &Caller,
    headers: &HeaderMap,
    id: Option<&RequestId>,
) -> Result<Arc<HttpSession>, Box<Response>> {
    let about = id.cloned();
    let with_id = |error: Error| Error {
        id: about.clone(),
        ..error
    };
    let errors = ErrorId::of(headers);
    let refused = |status, what: &str| {
        Box::new(error_response(
            status,
            &with_id(Error::new(INVALID_REQUEST, what)),
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
            &with_id(unsupported_version(version)),
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
