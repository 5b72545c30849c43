//! Spans for OpenTelemetry: where they come from, and where they go.

use toolbay_model::{HttpExchange, TraceContext};
use toolbay_otel::{AttributeMap, AttributeValue, FinishedSpan, SpanSide, SpanStatus, Telemetry, TraceSampler};

use crate::config::OtelConfig;

/// The name of the span of a request whose method is none of HTTP.
const UNNAMED: &str = "HTTP";

/// What a method is that is none of HTTP.
const OTHER: &str = "_OTHER";

/// The first status that says that a request failed.
const FAILED: u16 = 400;

/// Begins spans, and passes on those that have ended. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct SpanTracer {
    telemetry: Telemetry,
    sampler: TraceSampler,
    /// Whether spans have the name of the caller.
    names_callers: bool,
    /// The beginning of the id of this run of the server.
    run: String,
}

impl SpanTracer {
    /// A tracer by this configuration; `None` if no spans are sent.
    pub(crate) fn new(telemetry: &Telemetry, config: &OtelConfig) -> Option<Self> {
        let settings = telemetry.settings();
        let id = settings.resource.iter().find(|(name, _)| name == "service.instance.id");
        let run = id.and_then(|(_, id)| id.split('-').next()).unwrap_or_default().to_owned();
        let (telemetry, sampler) = (telemetry.clone(), TraceSampler::new(config.sample));
        settings.traces.then(|| Self { telemetry, sampler, names_callers: config.caller, run })
    }

    /// The name of a caller as spans have it; `None` if they have none.
    pub(crate) fn name(&self, caller: &str) -> Option<String> {
        self.names_callers.then(|| caller.to_owned())
    }

    /// A new span within that of a caller, or the first one of a trace.
    pub(crate) fn begin(&self, caller: Option<&TraceContext>) -> Option<TraceContext> {
        self.sampler.begin(caller)
    }

    /// The span of a request that a plugin sends in a call, if that is recorded.
    pub(crate) fn within(&self, call: &TraceContext) -> Option<TraceContext> {
        call.is_sampled().then(|| self.sampler.begin(Some(call))).flatten()
    }

    /// What a session is called. Its own id would let whoever reads it continue the session.
    pub(crate) fn session(&self, number: u64) -> String {
        format!("{}-{number}", self.run)
    }

    /// Passes on a span that has ended.
    pub(crate) fn ended(&self, span: FinishedSpan) {
        self.telemetry.span(span);
    }

    /// Passes on a request of a plugin.
    pub(crate) fn exchanged(&self, exchange: HttpExchange) {
        let HttpExchange { own, parent, method, scheme, host, port, began, ended, status, error } = exchange;
        let error =
            error.map(str::to_owned).or_else(|| status.filter(|status| *status >= FAILED).map(|s| s.to_string()));
        let name = if method == OTHER { UNNAMED.to_owned() } else { method.clone() };
        let mut attributes: AttributeMap = vec![
            ("http.request.method".into(), method.into()),
            ("server.address".into(), host.into()),
            ("server.port".into(), AttributeValue::Whole(port.into())),
            ("url.scheme".into(), scheme.into()),
        ];
        attributes
            .extend(status.map(|status| ("http.response.status_code".into(), AttributeValue::Whole(status.into()))));
        let failed = error.is_some();
        attributes.extend(error.map(|error| ("error.type".into(), error.into())));
        self.ended(FinishedSpan {
            own,
            parent: Some(parent),
            parent_is_remote: false,
            name,
            kind: SpanSide::Client,
            began,
            ended,
            attributes,
            events: Vec::new(),
            status: if failed { SpanStatus::Error(String::new()) } else { SpanStatus::Unset },
        });
    }
}
