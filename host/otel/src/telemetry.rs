//! What takes telemetry in.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::SystemTime;

use crate::exporter::{Ending, start};
use crate::family::Family;
use crate::intake::Intake;
use crate::queue::Queue;
use crate::record::Record;
use crate::settings::Settings;
use crate::signal::Signal;
use crate::span::Span;
use crate::timing::Timing;

/// Spans that wait to be sent, and lines of the log.
const MOST: usize = 4096;

/// Bytes of memory that each of these kinds may take while it waits.
const ROOM: usize = 8 << 20;

/// Takes telemetry in, from any thread and without waiting. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Telemetry {
    inner: Arc<Intake>,
}

impl Telemetry {
    /// What takes telemetry for these settings. Nothing is sent before [`Telemetry::start`].
    pub fn new(settings: Settings) -> Self {
        Self::timed(settings, Timing::default())
    }

    pub(crate) fn timed(settings: Settings, timing: Timing) -> Self {
        let (spans, records) = (Queue::new(MOST, ROOM), Queue::new(MOST, ROOM));
        let (started, reports_lost) = (SystemTime::now(), AtomicU64::new(0));
        Self { inner: Arc::new(Intake { settings, timing, started, spans, records, reports_lost }) }
    }

    /// Starts the thread that sends. `measure` tells what is measured; it may block for a moment.
    ///
    /// # Errors
    ///
    /// The system has no thread for it, or a file of certificates cannot be used.
    pub fn start(&self, measure: impl Fn() -> Vec<Family> + Send + Sync + 'static) -> Result<Ending, String> {
        start(Arc::clone(&self.inner), Arc::new(measure))
    }

    /// What is sent.
    pub fn settings(&self) -> &Settings {
        &self.inner.settings
    }

    /// Takes a span that has ended.
    pub fn span(&self, span: Span) {
        let size = span.size();
        self.inner.spans.push(span, size);
    }

    /// Takes a line of the log.
    pub fn record(&self, record: Record) {
        let size = record.size();
        self.inner.records.push(record, size);
    }

    /// How much of each signal was lost since the beginning: spans, reports of metrics and lines of the log.
    pub fn lost(&self) -> [(Signal, u64); 3] {
        let inner = &self.inner;
        [
            (Signal::Traces, inner.spans.dropped()),
            (Signal::Metrics, inner.reports_lost(0)),
            (Signal::Logs, inner.records.dropped()),
        ]
    }
}
