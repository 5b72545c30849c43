//! `tools/call`: from the request to the encoded response.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use bytesize::ByteSize;
use futures_util::FutureExt as _;
use serde::Deserialize;
use serde_json::{Map, Value};
use toolbay_model::{Answer, Bound, CallError, Failure, Reason, Rejection, Trace};

use crate::caller::Caller;
use crate::host::{Call, Place};
use crate::in_flight::Registered;
use crate::jsonrpc::{Error, INVALID_REQUEST, Id, Request};
use crate::observer::PeerObserver;
use crate::outbox::{Outbox, Outgoing};
use crate::outcome::{self, MISSING_CAPABILITY};
use crate::params::read;
use crate::quota::{Exhausted, Portion};
use crate::rules::Rules;
use crate::session::Session;
use crate::weight;

/// When a call that found no room for its arguments may be tried again. Calls are short.
const RETRY: Duration = Duration::from_secs(1);

#[derive(Deserialize)]
struct Params {
    name: String,
    #[serde(default)]
    arguments: Map<String, Value>,
    #[serde(rename = "_meta", default)]
    meta: Meta,
}

/// The parameters of a call that is rejected whatever its arguments are.
#[derive(Deserialize)]
struct Head {
    name: String,
    #[serde(rename = "_meta", default)]
    meta: Meta,
}

impl Head {
    fn params(self) -> Params {
        Params { name: self.name, arguments: Map::new(), meta: self.meta }
    }
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
    let (params, held) = match weigh(session, caller, request)? {
        Ok(held) => (read::<Params>(request.params)?, Ok(held)),
        // Its arguments are not parsed.
        Err(rejection) => (read::<Head>(request.params)?.params(), Err(rejection)),
    };
    let capabilities = rules.capabilities.clone();
    let Meta { progress_token, traceparent, tracestate, baggage } = params.meta;
    // The transport may have a trace context too; that of the message takes precedence.
    let trace = traceparent.and_then(|parent| Trace::parse(&parent, tracestate, baggage)).or(rules.trace.clone());
    let registered = session.in_flight.begin(&request.id, session.life.ended.child_token());
    let request =
        registered.ok_or_else(|| Error::new(INVALID_REQUEST, "a request with this id is already in progress"))?;
    let (place, held) = match held {
        Ok(held) => (caller.client.queue(&params.name), held),
        Err(rejection) => {
            caller.client.rejected(&params.name, rejection);
            (Err(rejection), Portion::default())
        }
    };
    let permitted = caller.may_use(&params.name);
    let call = Call { tool: params.name, permitted, arguments: params.arguments, capabilities, trace, held };
    Ok(Calling { request, rules, call, progress_token, place })
}

/// Takes the bytes that the parameters will take once they are parsed.
///
/// # Errors
///
/// They would be more than one request may ever take. The inner error: there is no room for them now.
fn weigh(session: &Session, caller: &Caller, request: &Request<'_>) -> Result<Result<Portion, Rejection>, Error> {
    let bytes = request.params.map_or(0, |params| weight::decoded(params.get()));
    let most = session.host.options().bytes_of_one();
    if bytes > most {
        let [bytes, most] = [bytes, most].map(|bytes| ByteSize::b(bytes as u64).display().iec().to_string());
        let what = format!(
            "the values in the request would take {bytes}, and those of one request may take {most}, a quarter of \
             server.requests: send fewer values"
        );
        return Err(Error::new(INVALID_REQUEST, what));
    }
    Ok(session.intake.take(&caller.name, bytes).map_err(busy))
}

/// There is no room for a request now.
pub(crate) fn busy(exhausted: Exhausted) -> Rejection {
    Rejection { reason: Reason::Busy { bound: Bound::Requests, most: exhausted.most() }, retry_after: RETRY }
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
