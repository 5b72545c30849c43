//! `tools/call`: from the request to the bytes of its answer.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt as _;
use serde::Deserialize;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::jsonrpc::{self, Error, INVALID_REQUEST, Id, Request};
use super::observer::Peer;
use super::outcome;
use super::revision::Revision;
use super::session::{Era, Session, not_initialized, read, unsupported};
use crate::admission::{Place, Refused};
use crate::service::{self, Answer, Failure};

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
}

/// A call that is registered and may be cancelled from now on.
pub(super) struct Work {
    id: Id,
    revision: Revision,
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
    pub(super) fn prepare_call(&self, request: &Request<'_>) -> Result<Work, Error> {
        self.read_call(request).map_err(|error| Error { id: Some(request.id.clone()), ..error })
    }

    fn read_call(&self, request: &Request<'_>) -> Result<Work, Error> {
        let revision = match self.era(request.params) {
            Era::Stateless(version) => return Err(unsupported(&version)),
            Era::Before => return Err(not_initialized()),
            Era::Session(revision) => revision,
        };
        let params: Params = read(request.params)?;
        let cancel = self.ended.child_token();
        if !self.begin(&request.id, cancel.clone()) {
            return Err(Error::new(INVALID_REQUEST, "a request with this id is in flight"));
        }
        Ok(Work {
            id: request.id.clone(),
            revision,
            request: service::Request { tool: params.name, arguments: params.arguments },
            progress_token: params.meta.progress_token,
            place: self.service.admission().queue(&self.client),
            cancel,
        })
    }

    /// Runs a call on the guests' runtime; `None` when it was cancelled.
    pub(super) async fn run_call(&self, work: Work) -> Option<Vec<u8>> {
        let answer = match &work.place {
            Err(refused) => Some(Ok(Answer { result: Err(Failure::Refused(*refused)), usage: None })),
            Ok(_place) => {
                let peer = Peer::new(self.outbox.clone(), work.revision, work.progress_token, work.cancel.clone());
                let call = self.service.call(&self.client, work.request, Arc::new(peer));
                tokio::select! {
                    biased;
                    () = work.cancel.cancelled() => None,
                    // Whatever unwinds in a call fails that call, and nothing else.
                    answer = AssertUnwindSafe(call).catch_unwind() => Some(answer.map_err(|panic| panic_message(&panic))),
                }
            }
        };
        self.finish(&work.id);
        let outcome = match answer? {
            Ok(answer) => outcome::outcome(answer, work.revision, self.service.config().usage)?,
            Err(panic) => Err(outcome::internal(&panic)),
        };
        Some(match outcome {
            Ok(result) => jsonrpc::result(&work.id, &result),
            Err(error) => self.encode_error(&Error { id: Some(work.id), ..error }),
        })
    }
}

fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    let message = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("a call panicked: {}", message.unwrap_or("no message"))
}
