//! Traces, metrics and logs for OpenTelemetry, sent over OTLP/HTTP in protobuf.
//!
//! What is to be sent comes in as data: a [`FinishedSpan`], a [`LogEvent`] of the log, and [`MetricFamily`] by family what is measured.
//! [`Telemetry`] takes them from any thread, without waiting, into queues that are bounded by number and by bytes. A thread
//! of its own empties them: [`Telemetry::start`] begins it, and dropping the [`ExporterGuard`] ends it, after what is left was
//! sent as far as that is possible in a moment.
//!
//! Whoever receives it may be slow, stuck, lying or gone. No call waits for it, nothing grows beyond its bound, what finds
//! no room is counted, and the log says once that it fails and once that it works again.
//!
//! This crate knows nothing of plugins, MCP or configuration files.

mod backoff;
mod client;
mod encode;
mod exporter;
mod family;
mod headers;
mod health;
mod intake;
mod queue;
mod record;
mod sampler;
mod settings;
mod signal;
mod span;
mod telemetry;
mod timing;
mod tls;
mod value;

pub use self::exporter::ExporterGuard;
pub use self::family::{HistogramPoint, MetricFamily, MetricNumber, MetricPoint, MetricPoints};
pub use self::headers::{ExportHeaders, pairs};
pub use self::intake::is_exporting;
pub use self::record::{LogEvent, LogSeverity};
pub use self::sampler::TraceSampler;
pub use self::settings::OtelSettings;
pub use self::signal::SignalKind;
pub use self::span::{FinishedSpan, SpanEvent, SpanSide, SpanStatus};
pub use self::telemetry::Telemetry;
pub use self::value::{AttributeMap, AttributeValue};

#[cfg(test)]
mod tests;
