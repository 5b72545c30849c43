//! What is taken in and not sent yet, for whoever takes it and whoever sends it.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use crate::queue::SignalQueue;
use crate::record::LogEvent;
use crate::settings::OtelSettings;
use crate::span::FinishedSpan;
use crate::timing::ExportTiming;

#[derive(Debug)]
pub(crate) struct TelemetryIntake {
    pub(crate) settings: OtelSettings,
    pub(crate) timing: ExportTiming,
    pub(crate) started: SystemTime,
    pub(crate) spans: SignalQueue<FinishedSpan>,
    pub(crate) records: SignalQueue<LogEvent>,
    pub(crate) reports_lost: AtomicU64,
}

impl TelemetryIntake {
    /// Counts so many more reports of metrics that were not taken. Returns how many there are.
    pub(crate) fn reports_lost(&self, more: u64) -> u64 {
        self.reports_lost.fetch_add(more, Ordering::Relaxed) + more
    }
}

thread_local! {
    static EXPORTING: Cell<bool> = const { Cell::new(false) };
}

/// Marks this thread as the one that sends.
pub(crate) fn exporting() {
    EXPORTING.set(true);
}

/// Whether this is the thread that sends. What libraries say on it must not be sent: each request would cause the next one.
pub fn is_exporting() -> bool {
    EXPORTING.get()
}
