//! A `tracing` layer that exports log events to OpenTelemetry, with the trace of their call.

use std::borrow::Cow;
use std::fmt::Debug;
use std::time::SystemTime;

use toolbay_model::text::bounded_line;
use toolbay_otel::{
    AttributeMap, AttributeValue, LogEvent, LogSeverity, Telemetry, is_exporter_thread,
};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes as SpanAttributes, Id};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

/// Maximum size of a message or field, in bytes.
const MAX_VALUE_BYTES: usize = 8_000;

/// Prefix of the targets of Toolbay's own events.
const OWN_TARGET_PREFIX: &str = "toolbay";

/// Exports log events as OpenTelemetry log records.
#[derive(Debug)]
pub(crate) struct LogExportLayer {
    telemetry: Telemetry,
    /// If set, records include the names of callers.
    names_callers: bool,
}

/// The trace id and the span id of a call.
#[derive(Clone, Default)]
struct CallTraceIds {
    trace: String,
    span: String,
}

impl LogExportLayer {
    pub(crate) fn new(telemetry: Telemetry, names_callers: bool) -> Self {
        Self {
            telemetry,
            names_callers,
        }
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for LogExportLayer {
    fn on_new_span(&self, attributes: &SpanAttributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut ids = CallTraceIds::default();
        attributes.record(&mut ids);
        if let Some(span) = context
            .span(id)
            .filter(|_| !ids.trace.is_empty() && !ids.span.is_empty())
        {
            span.extensions_mut().insert(ids);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let metadata = event.metadata();
        // Events that libraries emit during the export would be exported in turn, without end.
        if is_exporter_thread() && !metadata.target().starts_with(OWN_TARGET_PREFIX) {
            return;
        }
        let mut fields = EventFields {
            names_callers: self.names_callers,
            ..EventFields::default()
        };
        event.record(&mut fields);
        let span = context.event_scope(event).and_then(|scope| {
            let mut spans =
                scope.filter_map(|span| span.extensions().get::<CallTraceIds>().cloned());
            spans
                .next()
                .map(|CallTraceIds { trace, span }| (trace, span))
        });
        let severity = match *metadata.level() {
            Level::TRACE => LogSeverity::Trace,
            Level::DEBUG => LogSeverity::Debug,
            Level::INFO => LogSeverity::Info,
            Level::WARN => LogSeverity::Warn,
            Level::ERROR => LogSeverity::Error,
        };
        let EventFields {
            message,
            attributes,
            ..
        } = fields;
        self.telemetry.record_log_event(LogEvent {
            at: SystemTime::now(),
            severity,
            message,
            attributes,
            span,
        });
    }
}

impl Visit for CallTraceIds {
    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "trace_id" => value.clone_into(&mut self.trace),
            "span_id" => value.clone_into(&mut self.span),
            _ => {}
        }
    }

    fn record_debug(&mut self, _: &Field, _: &dyn Debug) {}
}

/// The message and fields of an event.
#[derive(Default)]
struct EventFields {
    names_callers: bool,
    message: String,
    attributes: AttributeMap,
}

impl EventFields {
    fn add(&mut self, field: &Field, value: AttributeValue) {
        let name: Cow<'static, str> = match field.name() {
            "tool" => "gen_ai.tool.name".into(),
            "caller" | "peer" if !self.names_callers => return,
            "caller" => "enduser.id".into(),
            "peer" => "client.address".into(),
            name => format!("dev.toolbay.{name}").into(),
        };
        self.attributes.push((name, value));
    }
}

impl Visit for EventFields {
    fn record_i64(&mut self, field: &Field, value: i64) {
        self.add(field, AttributeValue::Integer(value));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.add(field, AttributeValue::from_count(value));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.add(field, AttributeValue::Float(value));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.add(field, AttributeValue::Bool(value));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.add(field, bounded_line(value, MAX_VALUE_BYTES).into());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let text = bounded_line(format_args!("{value:?}"), MAX_VALUE_BYTES);
        if field.name() == "message" {
            self.message = text;
        } else {
            self.add(field, text.into());
        }
    }
}
