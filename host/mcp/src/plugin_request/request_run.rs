//! A request that enters a plugin, from its parameters to the encoded response. Implements
//! `tools/call`, `prompts/get`, `resources/read` and `completion/complete`.
//!
//! Each stage is a module with a type for what it has established: [`ParsedCall`], [`PendingCall`],
//! [`CompletedCall`](super::completed_call::CompletedCall) and [`EncodedCall`]. `call_driver` turns
//! the second into the third.

use std::sync::Arc;

use crate::exchange::outbox::Outbox;
use crate::host::caller::Caller;
use crate::plugin_request::call_state::QuestionChannel;
use crate::plugin_request::encoded_call::EncodedCall;
use crate::plugin_request::entry_params::ParamsReader;
use crate::plugin_request::parsed_call::ParsedCall;
use crate::plugin_request::pending_call::{ModeResolution, PendingCall};
use crate::plugin_request::task_decision::TaskMode;
use crate::plugin_request::{call_driver, task_start};
use crate::protocol::jsonrpc::{Error, Request};
use crate::protocol::message_context::RequestContext;
use crate::session::client_session::Session;

/// Runs a request of `caller`. `read` reads the parameters of its method. Returns when the next
/// message may be read: the call continues in the background.
pub(crate) async fn run_request(
    session: &Arc<Session>,
    caller: &Caller,
    request: &Request<'_>,
    read: ParamsReader,
    rules: RequestContext,
    reply: &Outbox,
) {
    match begin_call(session, caller, request, read, rules) {
        Ok(call) if matches!(call.task_mode(), TaskMode::Open(_)) => {
            // Does not delay other requests.
            let waiting = Arc::clone(session);
            let caller = caller.clone();
            let reply = reply.clone();
            session.spawn(async move {
                match call.resolve_task_mode(&waiting).await {
                    ModeResolution::Ready(call) => {
                        start_call(&waiting, &caller, call, &reply).await;
                    }
                    ModeResolution::Refused(error) => waiting.reject(error, &reply).await,
                    ModeResolution::Cancelled => {}
                }
            });
        }
        Ok(call) => start_call(session, caller, call, reply).await,
        Err(error) => session.reject(error, reply).await,
    }
}

/// Parses and registers a call with the rights of `caller`.
///
/// # Errors
///
/// The request is malformed; the error has its id.
pub(crate) fn begin_call(
    session: &Session,
    caller: &Caller,
    request: &Request<'_>,
    read: ParamsReader,
    rules: RequestContext,
) -> Result<Box<PendingCall>, Error> {
    ParsedCall::parse(session, caller, request.params, read, rules)
        .and_then(|parsed| PendingCall::register(session, caller, request, read, parsed))
        .map_err(|error| error.with_id(&request.id))
}

/// Starts a call, as a task if its mode says so.
async fn start_call(
    session: &Arc<Session>,
    caller: &Caller,
    call: Box<PendingCall>,
    reply: &Outbox,
) {
    if call.task_mode() != TaskMode::None {
        if let Err(error) = task_start::start(session, caller, call, reply).await {
            session.reject(error, reply).await;
        }
        return;
    }
    let calls = Arc::clone(session);
    let reply = reply.clone();
    session.spawn_call(async move {
        run_call(call, &calls, &reply)
            .await
            .send(&calls, &reply)
            .await;
    });
}

/// Runs a registered call to its encoded response. Log messages, progress and questions go to
/// `reply`.
pub(crate) async fn run_call(
    call: Box<PendingCall>,
    session: &Session,
    reply: &Outbox,
) -> EncodedCall {
    let cancelled = call.registration().cancelled.clone();
    let observer = Arc::new(call.observer(session, reply, cancelled.clone()));
    let revision = call.revision();
    let channel = QuestionChannel::Stream(reply);
    let (request, driving) = call_driver::drive(call, session, channel, observer, &cancelled);
    let completed = driving.await;
    let error = completed.error_code();
    let mut encoded = EncodedCall::encode(session, request, completed, revision);
    encoded.mark_encoded(error);
    encoded
}

#[cfg(test)]
mod tests;
