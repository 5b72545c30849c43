//! Receives messages and dispatches requests to their methods.

use std::sync::Arc;

use crate::dispatch::batch::handle_batch;
use crate::dispatch::method_resolution::{params_reader, resolve_method};
use crate::dispatch::method_responses::respond;
use crate::dispatch::methods::{listen, read_policy, task_result};
use crate::dispatch::unanswered_messages::{handle_notification, handle_response};
use crate::exchange::outbox::Outbox;
use crate::host::caller::Caller;
use crate::plugin_request::params_memory::busy_rejection;
use crate::plugin_request::request_run;
use crate::protocol::jsonrpc::{Error, INVALID_REQUEST, IncomingContent, Message, Request};
use crate::protocol::message_context::RequestContext;
use crate::protocol::method::McpMethod;
use crate::session::client_session::Session;

/// Handles the content of one line or body, with the rights of `caller`. Responses go to `reply`.
/// Returns when the next message may be read: calls continue in the background.
pub(crate) async fn receive(
    session: &Arc<Session>,
    caller: &Caller,
    incoming: Result<IncomingContent<'_>, Error>,
    reply: &Outbox,
) {
    match incoming {
        Ok(IncomingContent::Single(Message::Request(request))) => {
            let context = session.request_context(request.params);
            handle_request(session, caller, request, context, reply).await;
        }
        Ok(IncomingContent::Single(Message::Notification { method, params })) => {
            handle_notification(session, &method, params, reply);
        }
        Ok(IncomingContent::Single(Message::Response { id, outcome })) => {
            handle_response(session, caller, id.as_ref(), outcome);
        }
        Ok(IncomingContent::Batch(messages)) => {
            handle_batch(session, caller, messages, reply).await;
        }
        Err(error) => session.reject(error, reply).await,
    }
}

/// Handles a request of `caller` in this context.
pub(crate) async fn handle_request(
    session: &Arc<Session>,
    caller: &Caller,
    request: Request<'_>,
    context: Result<Option<RequestContext>, Error>,
    reply: &Outbox,
) {
    let (method, context) = match context.and_then(|context| {
        Ok((
            resolve_method(session, &request, context.as_ref())?,
            context,
        ))
    }) {
        Ok(resolved) => resolved,
        Err(error) => return session.reject(error.with_id(&request.id), reply).await,
    };
    match (method, context) {
        (McpMethod::ReadResource, Some(context)) if read_policy::is_requested(request.params) => {
            let policy = read_policy::answer(session, caller, context.revision);
            let message = match policy {
                Ok(result) => session.encode_result(&request.id, result, Some(context.revision)),
                Err(error) => session.encode_rejection(&error.with_id(&request.id)),
            };
            reply.send(message).await;
        }
        (method, Some(context)) if let Some(read_params) = params_reader(method) => {
            request_run::run_request(session, caller, &request, read_params, context, reply).await;
        }
        (McpMethod::TaskResult, Some(context)) => {
            if let Err(error) =
                task_result::open(session, caller, &request, context.revision, reply).await
            {
                session.reject(error.with_id(&request.id), reply).await;
            }
        }
        (McpMethod::Listen, Some(context)) => {
            if let Err(error) = listen::open(session, caller, &request, &context, reply) {
                session.reject(error.with_id(&request.id), reply).await;
            }
        }
        (method, Some(context))
            if method.waits_for_plugins() && !session.server.loading().is_complete() =>
        {
            respond_when_loaded(session, caller, request, method, context, reply).await;
        }
        (method, context) => {
            reply
                .send(respond(session, caller, &request, method, context).await)
                .await;
        }
    }
}

/// Responds once the plugins that existed at startup are loaded, without delaying other requests.
async fn respond_when_loaded(
    session: &Arc<Session>,
    caller: &Caller,
    request: Request<'_>,
    method: McpMethod,
    context: RequestContext,
    reply: &Outbox,
) {
    let id = request.id;
    let bytes = request.params.map_or(0, |params| params.get().len());
    let reservation = match session.request_quota.try_reserve(&caller.name, bytes) {
        Ok(reserved) => reserved,
        Err(exhausted) => {
            let reason = busy_rejection(exhausted).reason.to_string();
            let error = Error::new(INVALID_REQUEST, reason).with_id(&id);
            return session.reject(error, reply).await;
        }
    };
    let params = request.params.map(ToOwned::to_owned);
    let owned_session = Arc::clone(session);
    let caller = caller.clone();
    let reply = reply.clone();
    session.spawn(async move {
        let request = Request {
            id,
            method: method.name().into(),
            params: params.as_deref(),
        };
        reply
            .send(respond(&owned_session, &caller, &request, method, Some(context)).await)
            .await;
        drop(reservation);
    });
}
