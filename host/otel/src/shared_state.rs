//! State shared by the producers of telemetry and the exporter thread.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use crate::log_event::LogEvent;
use crate::queue::SignalQueue;
use crate::settings::OtelSettings;
use crate::span::FinishedSpan;
use crate::timing::ExportTiming;

#[derive(Debug)]
pub(crate) struct TelemetryState {
    pub(crate) settings: OtelSettings,
    pub(crate) timing: ExportTiming,
    pub(crate) started: SystemTime,
    pub(crate) spans: SignalQueue<FinishedSpan>,
    pub(crate) records: SignalQueue<LogEvent>,
    pub(crate) lost_reports: AtomicU64,
}

impl TelemetryState {
    /// Adds to the number of lost metrics reports. Returns the total.
    pub(crate) fn add_lost_reports(&self, count: u64) -> u64 {
        self.lost_reports.fetch_add(count, Ordering::Relaxed) + count
    }
}

thread_local! {
    static EXPORTING: Cell<bool> = const { Cell::new(false) };
}

/// Marks the current thread as the exporter thread.
pub(crate) fn mark_exporter_thread() {
    EXPORTING.set(true);
}

/// Returns whether the current thread is the exporter thread. Log events of libraries on this
/// thread must not be exported, because each request would cause another one.
pub fn is_exporter_thread() -> bool {
    EXPORTING.get()
}
