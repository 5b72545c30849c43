//! Requests without a session: each states its revision, and the session of each ends with its
//! response.

use std::sync::Arc;

use axum::response::Response;
use http::{HeaderMap, StatusCode};

use super::accepted_request::{AcceptedRequest, StatusMap, legacy_status};
use super::app_state::HttpState;
use super::credential_validity::CredentialValidity;
use super::headers::{self, ErrorId, SESSION_ID};
use super::post_response::{error_response, respond_single};
use crate::dispatch::dispatcher;
use crate::dispatch::methods::ping;
use crate::exchange::outbox::{self, OutgoingMessage};
use crate::host::caller::Caller;
use crate::protocol::jsonrpc::{self, Error, Request};
use crate::protocol::message_context::{RequestContext, missing_session};
use crate::protocol::method::McpMethod;
use crate::protocol::revision::Revision;
use crate::session::client_session::{Session, SessionChannel, ShutdownTokens};

/// Returns whether the headers belong to a stateless request.
pub(super) fn is_stateless(headers: &HeaderMap) -> bool {
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
pub(super) async fn handle_stateless(
    app: &Arc<HttpState>,
    caller: Arc<Caller>,
    trust: CredentialValidity,
    headers: &HeaderMap,
    request: Request<'_>,
    context: Result<Option<RequestContext>, Error>,
) -> AcceptedRequest {
    let errors = ErrorId::of(headers);
    // A `ping` needs no protocol version.
    if matches!(context, Ok(None)) && request.method == McpMethod::Ping.name() {
        return AcceptedRequest::Done(answer_ping(&request, errors));
    }
    let context = match check_context(app, &caller, headers, &request, context) {
        Ok(rules) => rules,
        Err(error) => {
            return AcceptedRequest::Done(error_response(
                StatusCode::BAD_REQUEST,
                &error.with_id(&request.id),
                errors,
            ));
        }
    };
    // A client cancels the request by closing the stream.
    let life = ShutdownTokens {
        ended: app.life.ended.child_token(),
        ..app.life.clone()
    };
    let guard = life.ended.clone().drop_guard();
    let not_found = context.revision.features().http_not_found;
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
        Arc::clone(&app.server),
        Arc::clone(&caller),
        intake,
        SessionChannel::PerRequest,
        life,
    );
    let (outbox, messages) = outbox::channel();
    dispatcher::handle_request(&session, &caller, request, Ok(Some(context)), &outbox).await;
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

fn answer_ping(request: &Request<'_>, errors: ErrorId) -> Response {
    let answer = match ping::answer(request.params) {
        Ok(result) => OutgoingMessage::response(jsonrpc::result(&request.id, &result)),
        Err(error) => {
            let error = error.with_id(&request.id);
            OutgoingMessage::rejection(jsonrpc::error(&error, errors == ErrorId::Null), error.code)
        }
    };
    respond_single(answer, legacy_status)
}

/// Returns the context that the request states, after checking that the headers match the body.
fn check_context(
    app: &HttpState,
    caller: &Caller,
    headers: &HeaderMap,
    request: &Request<'_>,
    context: Result<Option<RequestContext>, Error>,
) -> Result<RequestContext, Error> {
    let repeats = context.as_ref().is_ok_and(|stated| {
        stated
            .as_ref()
            .is_none_or(|rules| rules.revision.features().http_headers)
    });
    if repeats || context.is_err() {
        headers::check_against_body(headers, request, app.server.lists(), caller)?;
    }
    let rules = context?.ok_or_else(missing_session)?;
    Ok(RequestContext {
        trace: headers::trace_context(headers).map(Box::new),
        ..rules
    })
}
