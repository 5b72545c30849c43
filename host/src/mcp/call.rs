//! `tools/call`: from the request to the bytes of its answer.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt as _;
use serde::Deserialize;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::jsonrpc::{Error, INVALID_REQUEST, Id, Request};
use super::observer::Peer;
use super::outbox::{Outbox, Outgoing};
use super::outcome::{self, MISSING_CAPABILITY};
use super::rules::{Rules, unattached};
use super::session::{Session, read};
use crate::admission::{Place, Refused};
use crate::service::{self, Answer, Failure};
use crate::trace::Trace;

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

/// A call that is registered and may be cancelled from now on.
pub(super) struct Work {
    id: Id,
    rules: Rules,
    request: service::Request,
    progress_token: Option<Id>,
    /// Its place in the client's queue, held until the answer is on its way.
    place: Result<Place, Refused>,
    cancel: CancellationToken,
}

impl Session {
    /// Reads and registers a call.
    ///
    /// # Errors
    ///
    /// The request is malformed; the error has its id.
    pub(super) fn prepare_call(&self, request: &Request<'_>, rules: Option<Rules>) -> Result<Work, Error> {
        self.read_call(request, rules).map_err(|error| error.of(&request.id))
    }

    fn read_call(&self, request: &Request<'_>, rules: Option<Rules>) -> Result<Work, Error> {
        let rules = rules.ok_or_else(unattached)?;
        let params: Params = read(request.params)?;
        let capabilities = rules.capabilities.clone();
        let Meta { progress_token, traceparent, tracestate, baggage } = params.meta;
        // A transport may have one as well; what the message says itself is closer.
        let trace = traceparent.and_then(|parent| Trace::parse(&parent, tracestate, baggage)).or(rules.trace.clone());
        let cancel = self.ended.child_token();
        if !self.begin(&request.id, cancel.clone()) {
            return Err(Error::new(INVALID_REQUEST, "a request with this id is in flight"));
        }
        Ok(Work {
            id: request.id.clone(),
            rules,
            request: service::Request { tool: params.name, arguments: params.arguments, capabilities, trace },
            progress_token,
            place: self.service.admission().queue(&self.caller().client),
            cancel,
        })
    }

    /// Runs a call on the guests' runtime; what it says meanwhile goes to
    /// `reply`. `None` when it was cancelled.
    pub(super) async fn run_call(&self, work: Work, reply: &Outbox) -> Option<Outgoing> {
        let Work { id, rules, request, progress_token, place, cancel } = work;
        let caller = self.caller();
        let mut retry_after = None;
        let answer = match &place {
            Err(refused) => Some(Ok(Answer { result: Err(Failure::Refused(*refused)), usage: None })),
            Ok(_place) => {
                let peer = Peer::new(reply.clone(), &request.tool, &rules, progress_token, cancel.clone());
                let call = self.service.call(&caller, request, Arc::new(peer));
                tokio::select! {
                    biased;
                    () = cancel.cancelled() => None,
                    // Whatever unwinds in a call fails that call, and nothing else.
                    answer = AssertUnwindSafe(call).catch_unwind() => Some(answer.map_err(|panic| panic_message(&panic))),
                }
            }
        };
        self.finish(&id);
        let outcome = match answer? {
            Ok(answer) => {
                if let Err(Failure::Refused(refused)) = &answer.result {
                    retry_after = Some(refused.retry_after);
                }
                outcome::outcome(answer, rules.revision, self.service.config().usage)?
            }
            Err(panic) => Err(outcome::internal(&panic)),
        };
        Some(match outcome {
            Ok(result) => Outgoing { retry_after, ..Self::result(&id, result, Some(rules.revision)) },
            Err(error) if error.code == MISSING_CAPABILITY => self.refusal(&error.of(&id)),
            Err(error) => Outgoing::answer(self.encode_error(&error.of(&id))),
        })
    }
}

fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    let message = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("a call panicked: {}", message.unwrap_or("no message"))
}
