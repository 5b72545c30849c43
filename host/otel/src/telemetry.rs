//! The entry point of the crate, which accepts telemetry.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::SystemTime;

use crate::exporter::{ExporterGuard, StartError, start};
use crate::log_event::LogEvent;
use crate::metric_family::MetricFamily;
use crate::queue::SignalQueue;
use crate::settings::OtelSettings;
use crate::shared_state::TelemetryState;
use crate::signal::SignalKind;
use crate::span::FinishedSpan;
use crate::timing::ExportTiming;

/// Maximum number of queued spans, and of queued log events.
const MAX_QUEUED_ITEMS: usize = 4096;

/// Maximum memory size of queued spans, and of queued log events, in bytes.
const MAX_QUEUED_BYTES: usize = 8 << 20;

/// Accepts telemetry from any thread, without waiting. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Telemetry {
    inner: Arc<TelemetryState>,
}

impl Telemetry {
    /// Creates an instance with these settings. Nothing is sent before [`Telemetry::start`].
    pub fn new(settings: OtelSettings) -> Self {
        Self::with_timing(settings, ExportTiming::default())
    }

    pub(crate) fn with_timing(settings: OtelSettings, timing: ExportTiming) -> Self {
        let spans = SignalQueue::new(MAX_QUEUED_ITEMS, MAX_QUEUED_BYTES);
        let records = SignalQueue::new(MAX_QUEUED_ITEMS, MAX_QUEUED_BYTES);
        let started = SystemTime::now();
        let lost_reports = AtomicU64::new(0);
        Self {
            inner: Arc::new(TelemetryState {
                settings,
                timing,
                started,
                spans,
                records,
                lost_reports,
            }),
        }
    }

    /// Starts the exporter thread. `collect_metrics` returns the current metrics and may block briefly.
    ///
    /// # Errors
    ///
    /// Returns the reason if the thread cannot be started or a certificate file is invalid.
    pub fn start(
        &self,
        collect_metrics: impl Fn() -> Vec<MetricFamily> + Send + Sync + 'static,
    ) -> Result<ExporterGuard, StartError> {
        start(Arc::clone(&self.inner), Arc::new(collect_metrics))
    }

    /// Returns the settings.
    pub fn settings(&self) -> &OtelSettings {
        &self.inner.settings
    }

    /// Queues a finished span.
    pub fn record_span(&self, span: FinishedSpan) {
        let size = span.memory_size();
        self.inner.spans.push(span, size);
    }

    /// Queues a log event.
    pub fn record_log_event(&self, record: LogEvent) {
        let size = record.memory_size();
        self.inner.records.push(record, size);
    }

    /// Returns the number of lost items of each signal: spans, metrics reports and log events.
    pub fn lost_items(&self) -> [(SignalKind, u64); 3] {
        let inner = &self.inner;
        [
            (SignalKind::Traces, inner.spans.dropped_count()),
            (SignalKind::Metrics, inner.add_lost_reports(0)),
            (SignalKind::Logs, inner.records.dropped_count()),
        ]
    }
}
