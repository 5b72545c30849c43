//! The span of a request. It is reported when the request has ended, for whatever reason.

use std::sync::Arc;
use std::time::SystemTime;

use http::Method;
use toolbay_model::{CallObserver, HttpExchange, TraceContext};
use toolbay_outgoing::SendError;
use toolbay_policy::UrlOrigin;

/// The standard methods. A guest can invent others, and their names may contain private data.
const STANDARD_METHODS: [Method; 9] = [
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
const OTHER_METHOD: &str = "_OTHER";

/// Error code of a request that the guest dropped before a response arrived.
const CANCELLED_CODE: &str = "cancelled";

/// A span of a request. Dropping it reports the span.
pub(super) struct RequestSpan {
    observer: Arc<dyn CallObserver>,
    exchange: Option<HttpExchange>,
}

impl RequestSpan {
    /// Starts a span within the span of the call. Returns `None` if no observer collects it.
    pub(super) fn start(
        observer: &Arc<dyn CallObserver>,
        call: &TraceContext,
        method: &Method,
        origin: &UrlOrigin,
    ) -> Option<Self> {
        let own = observer.start_http_span(call)?;
        let now = SystemTime::now();
        let exchange = HttpExchange {
            span: own,
            parent_span_id: call.span_id.clone(),
            method: if STANDARD_METHODS.contains(method) {
                method.as_str()
            } else {
                OTHER_METHOD
            }
            .to_owned(),
            scheme: origin.scheme.as_str(),
            host: origin.host.to_string(),
            port: origin.port,
            started_at: now,
            ended_at: now,
            status: None,
            error: None,
        };
        Some(Self {
            observer: Arc::clone(observer),
            exchange: Some(exchange),
        })
    }

    /// Returns the trace context of the request.
    pub(super) fn trace_context(&self) -> Option<&TraceContext> {
        self.exchange.as_ref().map(|exchange| &exchange.span)
    }

    /// Records the status of the response.
    pub(super) fn record_status(&mut self, status: u16) {
        if let Some(exchange) = &mut self.exchange {
            exchange.status = Some(status);
        }
    }

    /// Records that the response failed or was cut off.
    pub(super) fn record_error(&mut self, error: &SendError) {
        if let Some(exchange) = &mut self.exchange {
            exchange.error = Some(error.code());
        }
    }
}

impl Drop for RequestSpan {
    fn drop(&mut self) {
        let Some(mut exchange) = self.exchange.take() else {
            return;
        };
        exchange.ended_at = SystemTime::now();
        if exchange.status.is_none() {
            exchange.error.get_or_insert(CANCELLED_CODE);
        }
        self.observer.http_exchange_ended(exchange);
    }
}
