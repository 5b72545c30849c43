//! One client's share of the server: implements the protocol's `Client` and `Place`.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use tokio::sync::OwnedSemaphorePermit;
use toolbay_mcp::{Call, Client, Place};
use toolbay_model::{Answer, Observer, Rejection};

use crate::admission::ClientPermits;
use crate::service::Service;
use crate::tally::Uncounted;

/// One client's share of the server.
pub(crate) struct Share {
    service: Service,
    permits: Arc<ClientPermits>,
}

/// A place in a client's queue, and the call that is made from it.
struct Queued {
    service: Service,
    permits: Arc<ClientPermits>,
    /// Counts the call however it ends.
    counted: Uncounted,
    _place: OwnedSemaphorePermit,
}

impl Share {
    /// The share of the caller with this name.
    pub(crate) fn new(service: Service, name: &str) -> Self {
        let permits = Arc::new(service.admission().client(name));
        Self { service, permits }
    }
}

impl Client for Share {
    fn queue(&self, tool: &str) -> Result<Box<dyn Place>, Rejection> {
        let mut counted = self.service.tally().begin(tool);
        match self.service.admission().queue(&self.permits) {
            Ok(place) => {
                let (service, permits) = (self.service.clone(), Arc::clone(&self.permits));
                Ok(Box::new(Queued { service, permits, counted, _place: place }))
            }
            Err(rejection) => {
                counted.end(Some(rejection.reason.kind()));
                Err(rejection)
            }
        }
    }
}

impl Place for Queued {
    fn call(&mut self, call: Call, observer: Arc<dyn Observer>) -> BoxFuture<'_, Answer> {
        Box::pin(async move {
            let answer = self.service.answer(&self.permits, call, observer).await;
            self.counted.end(answer.result.as_ref().err().map(toolbay_model::Failure::kind));
            answer
        })
    }
}
