//! A request as a span of its own: told when it has ended, however it ends.

use std::sync::Arc;
use std::time::SystemTime;

use http::Method;
use toolbay_model::{Exchange, Observer, Trace};
use toolbay_outgoing::SendError;
use toolbay_policy::Origin;

/// The methods that there are. A guest can make up others, which may say what nobody should read.
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

/// What stands for every other one, in the conventions of OpenTelemetry.
const OTHER: &str = "_OTHER";

/// The end of a request that the guest wanted no more of before it had an answer.
const CANCELLED: &str = "cancelled";

/// A request that is told when this is dropped.
pub(super) struct Traced {
    observer: Arc<dyn Observer>,
    exchange: Option<Exchange>,
}

impl Traced {
    /// A request of the call with this span, if somebody wants to know of it.
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

    /// The span of the request.
    pub(super) fn own(&self) -> Option<&Trace> {
        self.exchange.as_ref().map(|exchange| &exchange.own)
    }

    /// The head of the response is there.
    pub(super) fn answered(&mut self, status: u16) {
        if let Some(exchange) = &mut self.exchange {
            exchange.status = Some(status);
        }
    }

    /// There is no response, or no more of it.
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
