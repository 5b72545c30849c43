//! One client's share of the server: implements the protocol's `ClientShare` and `QueuePlace`.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use tokio::sync::OwnedSemaphorePermit;
use toolbay_catalog::{MatchBudget, MatchBudgetExhausted, Snapshot};
use toolbay_mcp::{ClientCall, ClientShare, QueuePlace};
use toolbay_model::{CallObserver, CallRejection, CallResult};
use tracing::Instrument as _;

use crate::approval::call_target::TOO_EXPENSIVE_MESSAGE;
use crate::call::admission::ClientPermits;
use crate::call::offload::OffloadShare;
use crate::call::service::CallService;
use crate::limits::call_permit::CallPermit;
use crate::observe::call_observers::CallObservers;
use crate::observe::call_outcome::CallEnding;
use crate::observe::call_span::CallSpan;

/// One client's share of the server.
pub(crate) struct ServerShare {
    service: CallService,
    permits: Arc<ClientPermits>,
    threads: OffloadShare,
}

/// A position in a client's queue, and the call made from it.
struct QueuedCall {
    service: CallService,
    permits: Arc<ClientPermits>,
    threads: OffloadShare,
    /// Observers of the call, however it ends.
    noted: CallObservers,
    /// Set while the host computes something for the call.
    permit: Option<Arc<CallPermit>>,
    _place: OwnedSemaphorePermit,
}

impl ServerShare {
    /// Creates the share of the caller with this name.
    pub(crate) fn new(service: CallService, name: &str) -> Self {
        let permits = service.admission().new_client(name);
        Self::from_permits(service, permits)
    }

    /// Creates the share of the program that embeds the server. It receives results whole.
    pub(crate) fn embedder(service: CallService, name: &str) -> Self {
        let permits = service.admission().new_embedder(name);
        Self::from_permits(service, permits)
    }

    fn from_permits(service: CallService, permits: ClientPermits) -> Self {
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
async fn existing(service: &CallService, threads: &OffloadShare, uris: Vec<String>) -> Vec<String> {
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
        Box::pin(existing(&self.service, &self.threads, uris))
    }

    fn enqueue(&self, tool: &str) -> Result<Box<dyn QueuePlace>, CallRejection> {
        let mut counted = self.service.tally().begin(tool);
        let line = self.service.start_audit_line(&self.permits, tool);
        let noticed = self.service.start_console_sink(&self.permits, tool);
        match self.service.admission().enter_queue(&self.permits) {
            Ok(place) => {
                let (service, permits, threads) = (
                    self.service.clone(),
                    Arc::clone(&self.permits),
                    self.threads.clone(),
                );
                let span = service
                    .tracer()
                    .map(|tracer| CallSpan::new(tracer, &permits.name));
                let noted = CallObservers {
                    counted,
                    line,
                    noticed,
                    span,
                };
                Ok(Box::new(QueuedCall {
                    service,
                    permits,
                    threads,
                    noted,
                    permit: None,
                    _place: place,
                }))
            }
            Err(rejection) => {
                counted.finish(
                    CallEnding::Failed(rejection.reason.kind()),
                    rejection.reason.key(),
                );
                if let Some(line) = line {
                    line.reject(rejection);
                }
                if let Some(noticed) = noticed {
                    noticed.reject(rejection);
                }
                Err(rejection)
            }
        }
    }

    fn record_rejection(&self, tool: &str, rejection: CallRejection) {
        if let Some(metrics) = self.service.metrics() {
            metrics.count_call(None, tool, CallEnding::Failed(rejection.reason.kind()));
            if let Some(key) = rejection.reason.key() {
                metrics.count_limit(key);
            }
        }
        if let Some(line) = self.service.start_audit_line(&self.permits, tool) {
            line.reject(rejection);
        }
        if let Some(noticed) = self.service.start_console_sink(&self.permits, tool) {
            noticed.reject(rejection);
        }
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
                noted,
                permit,
                ..
            } = self;
            let logged = noted
                .span
                .as_mut()
                .map_or_else(tracing::Span::none, |span| {
                    span.start(&call);
                    span.log_span()
                });
            let answering = async {
                match service.find_stored_result(permits, &call.request) {
                    Some(reading) => {
                        noted.counted.set_meter(
                            service
                                .metrics()
                                .map(|metrics| Arc::clone(&metrics.tools.resources)),
                        );
                        service
                            .read_stored_result(
                                permits,
                                threads,
                                reading,
                                noted.line.as_mut(),
                                permit,
                            )
                            .await
                    }
                    None => {
                        service
                            .run_call(permits, threads, call, observer, noted, permit)
                            .await
                    }
                }
            };
            let answer = answering.instrument(logged).await;
            noted.finish(&answer).await;
            answer
        })
    }

    fn response_encoded(&mut self, error: Option<i32>) {
        self.permit = None;
        if let Some(span) = self.noted.span.take() {
            CallSpan::finish(span, error);
        }
    }
}
