//! What takes telemetry in.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::SystemTime;

use crate::exporter::{ExporterGuard, start};
use crate::family::MetricFamily;
use crate::intake::TelemetryIntake;
use crate::queue::SignalQueue;
use crate::record::LogEvent;
use crate::settings::OtelSettings;
use crate::signal::SignalKind;
use crate::span::FinishedSpan;
use crate::timing::ExportTiming;

/// Spans that wait to be sent, and lines of the log.
const MOST: usize = 4096;

/// Bytes of memory that each of these kinds may take while it waits.
const ROOM: usize = 8 << 20;

/// Takes telemetry in, from any thread and without waiting. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Telemetry {
    inner: Arc<TelemetryIntake>,
}

impl Telemetry {
    /// What takes telemetry for these settings. Nothing is sent before [`Telemetry::start`].
    pub fn new(settings: OtelSettings) -> Self {
        Self::timed(settings, ExportTiming::default())
    }

    pub(crate) fn timed(settings: OtelSettings, timing: ExportTiming) -> Self {
        let (spans, records) = (SignalQueue::new(MOST, ROOM), SignalQueue::new(MOST, ROOM));
        let (started, reports_lost) = (SystemTime::now(), AtomicU64::new(0));
        Self { inner: Arc::new(TelemetryIntake { settings, timing, started, spans, records, reports_lost }) }
    }

    /// Starts the thread that sends. `measure` tells what is measured; it may block for a moment.
    ///
    /// # Errors
    ///
    /// The system has no thread for it, or a file of certificates cannot be used.
    pub fn start(
        &self,
        measure: impl Fn() -> Vec<MetricFamily> + Send + Sync + 'static,
    ) -> Result<ExporterGuard, String> {
        start(Arc::clone(&self.inner), Arc::new(measure))
    }

    /// What is sent.
    pub fn settings(&self) -> &OtelSettings {
        &self.inner.settings
    }

    /// Takes a span that has ended.
    pub fn span(&self, span: FinishedSpan) {
        let size = span.size();
        self.inner.spans.push(span, size);
    }

    /// Takes a line of the log.
    pub fn record(&self, record: LogEvent) {
        let size = record.size();
        self.inner.records.push(record, size);
    }

    /// How much of each signal was lost since the beginning: spans, reports of metrics and lines of the log.
    pub fn lost(&self) -> [(SignalKind, u64); 3] {
        let inner = &self.inner;
        [
            (SignalKind::Traces, inner.spans.dropped()),
            (SignalKind::Metrics, inner.reports_lost(0)),
            (SignalKind::Logs, inner.records.dropped()),
        ]
    }
}
