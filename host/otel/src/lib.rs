//! Export of traces, metrics and logs to OpenTelemetry, over OTLP/HTTP with protobuf.
//!
//! The input is plain data: [`FinishedSpan`]s, [`LogEvent`]s, and [`MetricFamily`] snapshots of the
//! metrics. [`Telemetry`] accepts it from any thread without waiting, and stores it in queues that
//! are bounded in items and in bytes. An exporter thread empties the queues. [`Telemetry::start`]
//! starts this thread. Dropping the [`ExporterGuard`] stops it, after a brief attempt to send the
//! remaining items.
//!
//! The receiver may be slow, unresponsive, faulty or unreachable. Calls never wait for it, and
//! memory use is bounded. Items that do not fit in a queue are dropped and counted. The log reports
//! an outage when it starts and when it ends.
//!
//! This crate does not depend on plugins, MCP or configuration files.

mod attribute;
mod backoff;
mod client;
mod encode;
mod exporter;
mod headers;
mod health;
mod log_event;
mod metric_family;
mod queue;
mod sampler;
mod settings;
mod shared_state;
mod signal;
mod span;
mod telemetry;
mod timing;
mod tls;

pub use self::attribute::{AttributeMap, AttributeValue};
pub use self::exporter::{ExporterGuard, StartError};
pub use self::headers::{ExportHeaders, parse_pairs};
pub use self::log_event::{LogEvent, LogSeverity};
pub use self::metric_family::{
    HistogramPoint, MetricFamily, MetricNumber, MetricPoint, MetricPoints,
};
pub use self::sampler::TraceSampler;
pub use self::settings::OtelSettings;
pub use self::shared_state::is_exporter_thread;
pub use self::signal::SignalKind;
pub use self::span::{FinishedSpan, SpanEvent, SpanSide, SpanStatus};
pub use self::telemetry::Telemetry;

#[cfg(test)]
mod tests;
