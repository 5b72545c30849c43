//! Observers of calls: metrics, audit log, console and spans.

pub(crate) mod audit_line;
pub(crate) mod audit_records;
pub(crate) mod call_observers;
pub(crate) mod call_outcome;
pub(crate) mod call_span;
pub(crate) mod console_report;
pub(crate) mod metrics;
pub(crate) mod outcome_counters;
pub(crate) mod publication_counter;
pub(crate) mod stage_timer;
pub(crate) mod tracer;
