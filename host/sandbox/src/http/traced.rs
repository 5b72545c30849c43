//! The span of a request. It is reported when the request has ended, for whatever reason.

use std::sync::Arc;
use std::time::SystemTime;

use http::Method;
use toolbay_model::{Exchange, Observer, Trace};
use toolbay_outgoing::SendError;
use toolbay_policy::Origin;

/// The standard methods. A guest can invent others, and their names may contain private data.
const METHODS: [Method; 9] = [
    Method::GET,
    Method::HEAD,
    Method::POST,
    Method::PUT,
    Method::DELETE,
    Method::CONNECT,
    Method::OPTIONS,
    Method::TRACE,
    Method::PATCH,
];

/// Placeholder for every other method, as in the OpenTelemetry conventions.
const OTHER: &str = "_OTHER";

/// Error code of a request that the guest dropped before a response arrived.
const CANCELLED: &str = "cancelled";

/// A span of a request. Dropping it reports the span.
pub(super) struct Traced {
    observer: Arc<dyn Observer>,
    exchange: Option<Exchange>,
}

impl Traced {
    /// Starts a span within the span of the call. Returns `None` if no observer collects it.
    pub(super) fn begin(observer: &Arc<dyn Observer>, call: &Trace, method: &Method, origin: &Origin) -> Option<Self> {
        let own = observer.span(call)?;
        let now = SystemTime::now();
        let exchange = Exchange {
            own,
            parent: call.span.clone(),
            method: if METHODS.contains(method) { method.as_str() } else { OTHER }.to_owned(),
            scheme: origin.scheme.as_str(),
            host: origin.host.to_string(),
            port: origin.port,
            began: now,
            ended: now,
            status: None,
            error: None,
        };
        Some(Self { observer: Arc::clone(observer), exchange: Some(exchange) })
    }

    /// Returns the trace context of the request.
    pub(super) fn own(&self) -> Option<&Trace> {
        self.exchange.as_ref().map(|exchange| &exchange.own)
    }

    /// Records the status of the response.
    pub(super) fn answered(&mut self, status: u16) {
        if let Some(exchange) = &mut self.exchange {
            exchange.status = Some(status);
        }
    }

    /// Records that the response failed or was cut off.
    pub(super) fn failed(&mut self, error: &SendError) {
        if let Some(exchange) = &mut self.exchange {
            exchange.error = Some(error.code());
        }
    }
}

impl Drop for Traced {
    fn drop(&mut self) {
        let Some(mut exchange) = self.exchange.take() else { return };
        exchange.ended = SystemTime::now();
        if exchange.status.is_none() {
            exchange.error.get_or_insert(CANCELLED);
        }
        self.observer.exchanged(exchange);
    }
}
