//! Observation of calls: their events ([`call_event`]) and the sinks that record them, which are the
//! log, the audit log, metrics, the console, recordings, spans and proposals of grants.

pub(crate) mod argument_recorder;
pub(crate) mod audit_line;
pub(crate) mod call_audit_lines;
pub(crate) mod call_event;
pub(crate) mod call_log;
pub(crate) mod call_outcome;
pub(crate) mod call_recording;
pub(crate) mod call_report;
pub(crate) mod call_sinks;
pub(crate) mod call_span;
pub(crate) mod change_counter;
pub(crate) mod console_report;
pub(crate) mod guest_observer;
pub(crate) mod guest_run;
pub(crate) mod learn;
pub(crate) mod metrics;
pub(crate) mod outcome_counters;
pub(crate) mod server_audit;
pub(crate) mod server_observers;
pub(crate) mod stage_times;
pub(crate) mod tracer;
