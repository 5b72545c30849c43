//! Batches of messages.

use std::sync::Arc;

use futures_util::future::join_all;

use crate::dispatch::method_resolution::{params_reader, resolve_method};
use crate::dispatch::method_responses::respond;
use crate::dispatch::unanswered_messages::{handle_notification, handle_response};
use crate::exchange::outbox::{Outbox, OutgoingMessage};
use crate::host::caller::Caller;
use crate::plugin_request::encoded_call::EncodedCall;
use crate::plugin_request::pending_call::{ModeResolution, PendingCall};
use crate::plugin_request::request_run;
use crate::protocol::jsonrpc::{Error, INVALID_REQUEST, Message, Request};
use crate::protocol::method::McpMethod;
use crate::protocol::revision::Revision;
use crate::session::client_session::Session;

/// Handles a batch: all responses form one array, and notifications have none.
pub(super) async fn handle_batch(
    session: &Arc<Session>,
    caller: &Caller,
    messages: Vec<Result<Message<'_>, Error>>,
    reply: &Outbox,
) {
    let revision = session.negotiated.borrow().revision;
    if !revision.is_some_and(|revision| revision.features().batches) {
        let with_batches = Revision::ALL
            .into_iter()
            .filter(|revision| revision.features().batches);
        let dates: Vec<&str> = with_batches.map(Revision::as_str).collect();
        let reason = format!(
            "batches are supported only in revision {}",
            dates.join(", ")
        );
        return session
            .reject(Error::new(INVALID_REQUEST, reason), reply)
            .await;
    }
    let mut responses = Vec::new();
    let mut calls = Vec::new();
    for message in messages {
        match message {
            Ok(Message::Request(request)) => {
                match start_batch_item(session, caller, &request).await {
                    Ok(BatchItem::Response(answer)) => responses.push(answer),
                    Ok(BatchItem::Call(call)) => calls.push(call),
                    Err(error) => {
                        responses.push(session.encode_rejection(&error.with_id(&request.id)));
                    }
                }
            }
            Ok(Message::Notification { method, params }) => {
                handle_notification(session, &method, params, reply);
            }
            Ok(Message::Response { id, outcome }) => {
                handle_response(session, caller, id.as_ref(), outcome);
            }
            Err(error) => responses.push(session.encode_rejection(&error)),
        }
    }
    session.spawn_call(run_calls(
        Arc::clone(session),
        calls,
        responses,
        reply.clone(),
    ));
}

/// Runs the calls of a batch, and sends their responses together with the other `responses`.
#[expect(
    clippy::vec_box,
    reason = "each call is boxed since its registration, and its methods take the box"
)]
async fn run_calls(
    session: Arc<Session>,
    calls: Vec<Box<PendingCall>>,
    mut responses: Vec<OutgoingMessage>,
    reply: Outbox,
) {
    let mut running = Vec::new();
    for call in join_all(
        calls
            .into_iter()
            .map(|call| call.resolve_task_mode(&session)),
    )
    .await
    {
        match call {
            ModeResolution::Ready(call) => running.push(call),
            ModeResolution::Refused(error) => responses.push(session.encode_rejection(&error)),
            ModeResolution::Cancelled => {}
        }
    }
    let finished_calls = join_all(
        running
            .into_iter()
            .map(|call| request_run::run_call(call, &session, &reply)),
    )
    .await;
    let bytes: usize = finished_calls
        .iter()
        .map(EncodedCall::bytes)
        .chain(responses.iter().map(|answer| answer.text.len()))
        .sum();
    let capacity = reply.reserve(bytes).await;
    let (call_responses, queue_places): (Vec<_>, Vec<_>) = finished_calls
        .into_iter()
        .map(|call| call.finish(&session))
        .unzip();
    responses.extend(call_responses.into_iter().flatten());
    if let Some(capacity) = capacity.filter(|_| !responses.is_empty()) {
        let texts: Vec<Vec<u8>> = responses.into_iter().map(|answer| answer.text).collect();
        capacity.send(OutgoingMessage::response(
            [b"[".as_slice(), &texts.join(&b','), b"]"].concat(),
        ));
    }
    drop(queue_places);
}

/// A request of a batch: either its response or a call to run.
enum BatchItem {
    Response(OutgoingMessage),
    Call(Box<PendingCall>),
}

async fn start_batch_item(
    session: &Arc<Session>,
    caller: &Caller,
    request: &Request<'_>,
) -> Result<BatchItem, Error> {
    let context = session.request_context(request.params)?;
    match (resolve_method(session, request, context.as_ref())?, context) {
        (McpMethod::Initialize, _) => Err(Error::new(
            INVALID_REQUEST,
            "initialize must not be part of a batch",
        )),
        (method, Some(context)) if let Some(read_params) = params_reader(method) => {
            request_run::begin_call(session, caller, request, read_params, context)
                .map(BatchItem::Call)
        }
        (method, context) => Ok(BatchItem::Response(
            respond(session, caller, request, method, context).await,
        )),
    }
}
