//! Creation and export of OpenTelemetry spans.

use toolbay_model::{HttpExchange, TraceContext};
use toolbay_otel::{
    AttributeMap, AttributeValue, FinishedSpan, SpanSide, SpanStatus, Telemetry, TraceSampler,
};

use crate::config::OtelConfig;

/// Span name of a request with a nonstandard HTTP method.
const UNKNOWN_METHOD_SPAN: &str = "HTTP";

/// Method attribute of a request with a nonstandard HTTP method.
const OTHER_METHOD: &str = "_OTHER";

/// Lowest status of a failed request.
const MIN_ERROR_STATUS: u16 = 400;

/// Creates spans, and exports finished ones. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct SpanTracer {
    telemetry: Telemetry,
    sampler: TraceSampler,
    /// True if spans include the caller's name.
    names_callers: bool,
    /// The first part of the id of this run of the server.
    run: String,
}

impl SpanTracer {
    /// Creates a tracer from the configuration. Returns `None` if no spans are sent.
    pub(crate) fn new(telemetry: &Telemetry, config: &OtelConfig) -> Option<Self> {
        let settings = telemetry.settings();
        let id = settings
            .resource
            .iter()
            .find(|(name, _)| name == "service.instance.id");
        let run = id
            .and_then(|(_, id)| id.split('-').next())
            .unwrap_or_default()
            .to_owned();
        let telemetry = telemetry.clone();
        let sampler = TraceSampler::new(config.sample_ratio);
        settings.traces.then(|| Self {
            telemetry,
            sampler,
            names_callers: config.include_caller,
            run,
        })
    }

    /// Returns the caller's name for spans, or `None` if spans do not include it.
    pub(crate) fn caller_name(&self, caller: &str) -> Option<String> {
        self.names_callers.then(|| caller.to_owned())
    }

    /// Creates a span within that of a caller, or the first span of a trace.
    pub(crate) fn begin(&self, caller: Option<&TraceContext>) -> Option<TraceContext> {
        self.sampler.start_span(caller)
    }

    /// Creates the span of a request that a plugin sends during a call, if the call is sampled.
    pub(crate) fn begin_request(&self, call: &TraceContext) -> Option<TraceContext> {
        call.is_sampled()
            .then(|| self.sampler.start_span(Some(call)))
            .flatten()
    }

    /// Returns the name of a session in spans. With the real id, a reader of spans could take over
    /// the session.
    pub(crate) fn session_label(&self, number: u64) -> String {
        format!("{}-{number}", self.run)
    }

    /// Exports a finished span.
    pub(crate) fn export(&self, span: FinishedSpan) {
        self.telemetry.record_span(span);
    }

    /// Exports the span of a plugin's request.
    pub(crate) fn export_exchange(&self, exchange: HttpExchange) {
        let HttpExchange {
            span: own,
            parent_span_id: parent,
            method,
            scheme,
            host,
            port,
            started_at: began,
            ended_at: ended,
            status,
            error,
        } = exchange;
        let error = error.map(str::to_owned).or_else(|| {
            status
                .filter(|status| *status >= MIN_ERROR_STATUS)
                .map(|s| s.to_string())
        });
        let name = if method == OTHER_METHOD {
            UNKNOWN_METHOD_SPAN.to_owned()
        } else {
            method.clone()
        };
        let mut attributes: AttributeMap = vec![
            ("http.request.method".into(), method.into()),
            ("server.address".into(), host.into()),
            ("server.port".into(), AttributeValue::Integer(port.into())),
            ("url.scheme".into(), scheme.into()),
        ];
        attributes.extend(status.map(|status| {
            (
                "http.response.status_code".into(),
                AttributeValue::Integer(status.into()),
            )
        }));
        let failed = error.is_some();
        attributes.extend(error.map(|error| ("error.type".into(), error.into())));
        self.export(FinishedSpan {
            context: own,
            parent: Some(parent),
            parent_is_remote: false,
            name,
            kind: SpanSide::Client,
            started_at: began,
            ended_at: ended,
            attributes,
            events: Vec::new(),
            status: if failed {
                SpanStatus::Error(String::new())
            } else {
                SpanStatus::Unset
            },
        });
    }
}
