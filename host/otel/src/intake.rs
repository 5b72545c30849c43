//! What is taken in and not sent yet, for whoever takes it and whoever sends it.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use crate::queue::Queue;
use crate::record::Record;
use crate::settings::Settings;
use crate::span::Span;
use crate::timing::Timing;

#[derive(Debug)]
pub(crate) struct Intake {
    pub(crate) settings: Settings,
    pub(crate) timing: Timing,
    pub(crate) started: SystemTime,
    pub(crate) spans: Queue<Span>,
    pub(crate) records: Queue<Record>,
    pub(crate) reports_lost: AtomicU64,
}

impl Intake {
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
