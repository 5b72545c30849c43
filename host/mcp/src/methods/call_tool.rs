//! `tools/call`: from the request to the encoded response.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt as _;
use serde::Deserialize;
use serde_json::{Map, Value};
use toolbay_model::{Answer, CallError, Failure, Rejection, Trace};

use crate::caller::Caller;
use crate::host::{Call, Place};
use crate::in_flight::Registered;
use crate::jsonrpc::{Error, INVALID_REQUEST, Id, Request};
use crate::observer::PeerObserver;
use crate::outbox::{Outbox, Outgoing};
use crate::outcome::{self, MISSING_CAPABILITY};
use crate::params::read;
use crate::rules::Rules;
use crate::session::Session;

#[derive(Deserialize)]
struct Params {
    name: String,
    #[serde(default)]
    arguments: Map<String, Value>,
    #[serde(rename = "_meta", default)]
    meta: Meta,
}

#[derive(Default, Deserialize)]
struct Meta {
    #[serde(rename = "progressToken")]
    progress_token: Option<Id>,
    traceparent: Option<String>,
    tracestate: Option<String>,
    baggage: Option<String>,
}

/// A registered call, which can be cancelled.
pub(crate) struct Calling {
    request: Registered,
    rules: Rules,
    call: Call,
    progress_token: Option<Id>,
    place: Result<Box<dyn Place>, Rejection>,
}

/// A call that has ended. Its id stays taken, and the client can still cancel it, until its response is queued.
pub(crate) struct Called {
    request: Registered,
    /// `None` if the client has cancelled the call.
    answer: Option<Outgoing>,
    place: Option<Box<dyn Place>>,
}

/// Parses and registers a call with the rights of `caller`.
///
/// # Errors
///
/// The request is malformed; the error has its id.
pub(crate) fn begin(session: &Session, caller: &Caller, request: &Request<'_>, rules: Rules) -> Result<Calling, Error> {
    read_call(session, caller, request, rules).map_err(|error| error.of(&request.id))
}

fn read_call(session: &Session, caller: &Caller, request: &Request<'_>, rules: Rules) -> Result<Calling, Error> {
    let params: Params = read(request.params)?;
    let capabilities = rules.capabilities.clone();
    let Meta { progress_token, traceparent, tracestate, baggage } = params.meta;
    // The transport may have a trace context too; that of the message takes precedence.
    let trace = traceparent.and_then(|parent| Trace::parse(&parent, tracestate, baggage)).or(rules.trace.clone());
    let registered = session.in_flight.begin(&request.id, session.life.ended.child_token());
    let request =
        registered.ok_or_else(|| Error::new(INVALID_REQUEST, "a request with this id is already in progress"))?;
    let place = caller.client.queue(&params.name);
    let permitted = caller.may_use(&params.name);
    let call = Call { tool: params.name, permitted, arguments: params.arguments, capabilities, trace };
    Ok(Calling { request, rules, call, progress_token, place })
}

impl Calling {
    /// Runs the call; log messages and progress go to `reply`.
    pub(crate) async fn run(self, session: &Session, reply: &Outbox) -> Called {
        let Self { request, rules, call, progress_token, place } = self;
        let (id, cancel) = (&request.id, &request.cancelled);
        let mut retry_after = None;
        let (answer, place) = match place {
            Err(rejection) => (Some(Ok(failed(Failure::Rejected(rejection)))), None),
            Ok(mut place) => {
                let observer = PeerObserver::new(reply.clone(), &call.tool, &rules, progress_token, cancel.clone());
                let calling = place.call(call, Arc::new(observer));
                let answer = tokio::select! {
                    biased;
                    () = cancel.cancelled() => None,
                    () = session.life.stopped.cancelled() => Some(Ok(failed(Failure::Call(CallError::Cancelled)))),
                    // A panic in a call fails only that call.
                    answer = AssertUnwindSafe(calling).catch_unwind() => {
                        Some(answer.map_err(|panic| panic_message(&panic)))
                    }
                };
                (answer, Some(place))
            }
        };
        let Some(answer) = answer else { return Called { request, answer: None, place } };
        let outcome = match answer {
            Ok(answer) => {
                if let Err(Failure::Rejected(rejection)) = &answer.result {
                    retry_after = Some(rejection.retry_after);
                }
                outcome::outcome(answer, rules.revision, session.host.options().usage)
            }
            Err(panic) => Err(outcome::internal(&panic)),
        };
        let outgoing = match outcome {
            Ok(result) => Outgoing { retry_after, ..Session::result(id, result, Some(rules.revision)) },
            Err(error) if error.code == MISSING_CAPABILITY => session.refusal(&error.of(id)),
            Err(error) => Outgoing::answer(session.encode_error(&error.of(id))),
        };
        Called { request, answer: Some(outgoing), place }
    }
}

impl Called {
    /// Queues the response as soon as there is capacity, unless the client cancels the call before that. The place in
    /// the client's queue is held until then.
    pub(crate) async fn send(self, session: &Session, reply: &Outbox) {
        let cancelled = self.request.cancelled.clone();
        let bytes = self.bytes();
        let capacity = tokio::select! {
            biased;
            () = cancelled.cancelled() => None,
            capacity = reply.reserve(bytes) => capacity,
        };
        let (answer, _place) = self.settle(session);
        if let (Some(capacity), Some(answer)) = (capacity, answer) {
            capacity.send(answer);
        }
    }

    /// Length of the response.
    pub(crate) fn bytes(&self) -> usize {
        self.answer.as_ref().map_or(0, |answer| answer.text.len())
    }

    /// Frees the id. Returns the response, unless the client has cancelled the call, and the place in the client's
    /// queue. Nothing may be awaited before the response is queued: the id may already be that of another request.
    pub(crate) fn settle(self, session: &Session) -> (Option<Outgoing>, Option<Box<dyn Place>>) {
        let Self { request, answer, place } = self;
        let is_wanted = session.in_flight.finish(&request);
        (answer.filter(|_| is_wanted), place)
    }
}

fn failed(failure: Failure) -> Answer {
    Answer { result: Err(failure), usage: None }
}

fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    let message = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("a call panicked: {}", message.unwrap_or("no message"))
}
