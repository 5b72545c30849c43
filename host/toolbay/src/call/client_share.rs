//! One client's share of the server: implements the protocol's `ClientShare` and `QueuePlace`.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use tokio::sync::OwnedSemaphorePermit;
use toolbay_catalog::{MatchBudget, MatchBudgetExhausted, Snapshot};
use toolbay_mcp::{ClientCall, ClientShare, QueuePlace};
use toolbay_model::{CallObserver, CallRejection, CallResult};
use tracing::Instrument as _;

use crate::approval::call_target::TOO_EXPENSIVE_MESSAGE;
use crate::call::client_permits::ClientAdmission;
use crate::call::host_work::CallClient;
use crate::call::offload::OffloadShare;
use crate::call::service::CallService;
use crate::limits::call_permit::CallPermit;
use crate::observe::call_event::{CallEvent, CallSink as _};
use crate::observe::call_sinks::CallSinks;

/// One client's share of the server.
pub(crate) struct ServerShare {
    service: CallService,
    permits: Arc<ClientAdmission>,
    threads: OffloadShare,
}

/// A position in a client's queue, and the call made from it.
struct QueuedCall {
    service: CallService,
    permits: Arc<ClientAdmission>,
    threads: OffloadShare,
    /// Sinks of the call's events. They record the call, however it ends.
    sinks: CallSinks,
    /// The call's permit, from its admission until its response is encoded.
    permit: Option<Arc<CallPermit>>,
    _place: OwnedSemaphorePermit,
}

impl ServerShare {
    /// Creates the share of the caller with this name.
    pub(crate) fn new(service: CallService, name: &str) -> Self {
        let permits = service.admission().new_client(name);
        Self::from_permits(service, permits)
    }

    /// Creates the share of the program that embeds the server. It always receives whole results.
    pub(crate) fn embedder(service: CallService, name: &str) -> Self {
        let permits = service.admission().new_embedder(name);
        Self::from_permits(service, permits)
    }

    fn from_permits(service: CallService, permits: ClientAdmission) -> Self {
        let threads = service.offload().share();
        Self {
            service,
            permits: Arc::new(permits),
            threads,
        }
    }
}

/// Returns the `uris` that have a resource. If the check is not quick, runs it on another thread
/// within the budget of a request.
async fn existing_uris(
    service: &CallService,
    threads: &OffloadShare,
    uris: Vec<String>,
) -> Vec<String> {
    let snapshot = service.catalog().snapshot();
    let mut steps = MatchBudget::new(MatchBudget::MAX_INLINE);
    let found: Result<Vec<bool>, MatchBudgetExhausted> = uris
        .iter()
        .map(|uri| Ok(snapshot.find_resource(uri, &mut steps)?.is_some()))
        .collect();
    match found {
        Ok(found) => uris
            .into_iter()
            .zip(found)
            .filter_map(|(uri, found)| found.then_some(uri))
            .collect(),
        Err(MatchBudgetExhausted) => service
            .offload()
            .run_bounded(threads, move || existing_uris_blocking(&snapshot, uris))
            .await
            .unwrap_or_default(),
    }
}

/// Returns the `uris` that have a resource. Checks the quick ones first, so that an expensive one
/// does not prevent them from being found.
fn existing_uris_blocking(snapshot: &Snapshot, mut uris: Vec<String>) -> Vec<String> {
    let mut request = MatchBudget::new(MatchBudget::PER_REQUEST);
    let mut expensive = Vec::new();
    uris.retain(|uri| {
        let found = snapshot.find_resource(uri, &mut MatchBudget::new(MatchBudget::MAX_INLINE));
        if found.is_err() {
            expensive.push(uri.clone());
        }
        matches!(found, Ok(Some(_)))
    });
    for uri in expensive {
        match request.with_part(MatchBudget::PER_URI, |steps| {
            snapshot
                .find_resource(&uri, steps)
                .map(|found| found.is_some())
        }) {
            Ok(true) => uris.push(uri),
            Ok(false) => {}
            Err(MatchBudgetExhausted) => tracing::debug!("{TOO_EXPENSIVE_MESSAGE}"),
        }
    }
    uris
}

impl ClientShare for ServerShare {
    fn existing_uris(&self, uris: Vec<String>) -> BoxFuture<'_, Vec<String>> {
        Box::pin(existing_uris(&self.service, &self.threads, uris))
    }

    fn enqueue(&self, tool: &str) -> Result<Box<dyn QueuePlace>, CallRejection> {
        let mut sinks = CallSinks::start(self.service.observers(), &self.permits.name, tool);
        match self.service.admission().enter_queue(&self.permits) {
            Ok(place) => Ok(Box::new(QueuedCall {
                service: self.service.clone(),
                permits: Arc::clone(&self.permits),
                threads: self.threads.clone(),
                sinks,
                permit: None,
                _place: place,
            })),
            Err(rejection) => {
                sinks.record(&CallEvent::Refused(rejection));
                Err(rejection)
            }
        }
    }

    fn record_rejection(&self, tool: &str, rejection: CallRejection) {
        self.service
            .observers()
            .record_rejection(&self.permits.name, tool, rejection);
    }
}

impl QueuePlace for QueuedCall {
    fn call(
        &mut self,
        call: ClientCall,
        observer: Arc<dyn CallObserver>,
    ) -> BoxFuture<'_, CallResult> {
        Box::pin(async move {
            let Self {
                service,
                permits,
                threads,
                sinks,
                permit,
                ..
            } = self;
            let client = CallClient {
                admission: permits,
                offload: service.offload(),
                threads,
            };
            sinks.record(&CallEvent::Started(&call));
            let logged = sinks.log_span();
            let answering = service.answer(client, call, observer, sinks, permit);
            let answer = answering.instrument(logged).await;
            // The call has ended, whether or not a sink could record it.
            let _ = sinks.commit(&CallEvent::Ended(&answer)).await;
            answer
        })
    }

    fn response_encoded(&mut self, error: Option<i32>) {
        self.permit = None;
        self.sinks.record(&CallEvent::Responded(error));
    }
}
