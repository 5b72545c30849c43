//! The observers of a server: those that are on, and what they share among calls.

use std::sync::{Arc, OnceLock};

use toolbay_console::{RunningCallEntry, RunningCallTable, ServerActivity};
use toolbay_model::CallRejection;
use toolbay_otel::Telemetry;
use toolbay_state::StateDatabase;

use crate::config::Config;
use crate::observe::call_audit_lines::CallAuditLines;
use crate::observe::call_event::{CallEvent, CallSink};
use crate::observe::call_outcome::OutcomeLabel;
use crate::observe::call_recording::ServerRecording;
use crate::observe::console_report::ConsoleReport;
use crate::observe::learn::GrantLearner;
use crate::observe::metrics::ServerMetrics;
use crate::observe::outcome_counters::CallCounters;
use crate::observe::server_audit::ServerAudit;
use crate::observe::tracer::SpanTracer;

/// The observers that a server starts with; `None` for those that are off.
#[derive(Default)]
pub(crate) struct EnabledObservers {
    /// Proposes grants from denials.
    pub(crate) learner: Option<GrantLearner>,
    /// Writes the audit log.
    pub(crate) audit: Option<ServerAudit>,
    /// Counts calls for operators.
    pub(crate) metrics: Option<Arc<ServerMetrics>>,
    /// Reports calls to the console.
    pub(crate) console: Option<Arc<ServerActivity>>,
    /// Records calls.
    pub(crate) recording: Option<ServerRecording>,
    /// Exports telemetry to a collector.
    pub(crate) telemetry: Option<Telemetry>,
}

/// The observers of a running server.
pub(crate) struct ServerObservers {
    counters: Arc<CallCounters>,
    metrics: Option<Arc<ServerMetrics>>,
    audit: Option<ServerAudit>,
    /// Data source of the console, once there is one.
    console: OnceLock<Arc<ServerActivity>>,
    /// The running calls, if they can be listed without a console.
    running: OnceLock<RunningCallTable>,
    /// True if the contents of calls are reported to the console.
    contents: bool,
    recording: Option<ServerRecording>,
    telemetry: Option<Telemetry>,
    tracer: Option<SpanTracer>,
    learner: Option<GrantLearner>,
    /// State of plugins, of which only the size is queried here.
    state: Option<StateDatabase>,
}

impl ServerObservers {
    /// Creates the observers of a server with this configuration.
    pub(crate) fn new(enabled: EnabledObservers, config: &Config) -> Self {
        let EnabledObservers {
            learner,
            audit: audited,
            metrics,
            console: watch,
            recording: recorded,
            telemetry,
        } = enabled;
        Self {
            counters: Arc::new(CallCounters::new(metrics.clone())),
            metrics,
            audit: audited,
            console: watch.map_or_else(OnceLock::new, OnceLock::from),
            running: OnceLock::new(),
            contents: config.console.contents,
            recording: recorded,
            tracer: telemetry
                .as_ref()
                .and_then(|telemetry| SpanTracer::new(telemetry, &config.otel)),
            telemetry,
            learner,
            state: config.database(),
        }
    }

    /// Returns the counts of call outcomes.
    pub(crate) fn counters(&self) -> &Arc<CallCounters> {
        &self.counters
    }

    /// Returns the metrics, if they are enabled.
    pub(crate) fn metrics(&self) -> Option<&Arc<ServerMetrics>> {
        self.metrics.as_ref()
    }

    /// Returns the audit log, if there is one.
    pub(crate) fn audit(&self) -> Option<&ServerAudit> {
        self.audit.as_ref()
    }

    /// Returns the data source of the console, or `None` if there is no console.
    pub(crate) fn console(&self) -> Option<&ServerActivity> {
        self.console.get().map(Arc::as_ref)
    }

    /// Attaches a console, which receives events from this point on. There is at most one.
    pub(crate) fn attach_console(&self, console: &Arc<ServerActivity>) {
        drop(self.console.set(Arc::clone(console)));
    }

    /// Returns the console that receives events, or `None` if there is none.
    pub(crate) fn attached_console(&self) -> Option<&Arc<ServerActivity>> {
        self.console.get()
    }

    /// Lists running calls in this table from this point on. There is at most one.
    pub(crate) fn track_calls(&self, table: &RunningCallTable) {
        drop(self.running.set(table.clone()));
    }

    /// Returns the running calls, or `None` if they are not listed.
    pub(crate) fn running_calls(&self) -> Option<RunningCallTable> {
        let attached = self.console.get().map(|console| console.running_calls());
        attached.or_else(|| self.running.get().cloned())
    }

    /// Lists a call that starts, if there is no console, which lists it itself.
    pub(crate) fn start_running_call(&self, caller: &str, tool: &str) -> Option<RunningCallEntry> {
        match self.console.get() {
            Some(_) => None,
            None => Some(self.running.get()?.start(caller, tool)),
        }
    }

    /// Returns the recording, if calls are recorded.
    pub(crate) fn recording(&self) -> Option<&ServerRecording> {
        self.recording.as_ref()
    }

    /// Returns the telemetry, if it is enabled.
    pub(crate) fn telemetry(&self) -> Option<&Telemetry> {
        self.telemetry.as_ref()
    }

    /// Returns the tracer, if spans are exported.
    pub(crate) fn tracer(&self) -> Option<&SpanTracer> {
        self.tracer.as_ref()
    }

    /// Returns the learner, if grants are proposed.
    pub(crate) fn learner(&self) -> Option<&GrantLearner> {
        self.learner.as_ref()
    }

    /// Returns the size of the plugins' state in bytes, or `None` if there is none. Blocks.
    pub(crate) fn state_size(&self) -> Option<u64> {
        self.state.as_ref()?.size()
    }

    /// Logs the counts of all calls when the server stops, ends learning from denials, and writes
    /// the proposals.
    pub(crate) fn finish(&self) {
        self.counters.log();
        if let Some(learner) = &self.learner {
            learner.finish();
        }
    }

    /// Starts the audit log line of a call. Returns `None` if there is no log.
    pub(crate) fn start_line(&self, caller: &str, tool: &str) -> Option<CallAuditLines> {
        let audit = self.audit.as_ref()?;
        Some(CallAuditLines::start(audit, caller, tool))
    }

    /// Starts the report of a call to the console. Returns `None` if there is no console.
    pub(crate) fn start_console_report(&self, caller: &str, tool: &str) -> Option<ConsoleReport> {
        let console = self.console.get()?;
        Some(ConsoleReport::start(console, caller, tool, self.contents))
    }

    /// Records a call that was rejected before it reached its client's queue. The counters of the
    /// log do not include it.
    pub(crate) fn record_rejection(&self, caller: &str, tool: &str, rejection: CallRejection) {
        if let Some(metrics) = &self.metrics {
            metrics.count_call(None, tool, OutcomeLabel::Failed(rejection.reason.kind()));
            if let Some(key) = rejection.reason.key() {
                metrics.count_limit(key);
            }
        }
        let refused = CallEvent::Refused(rejection);
        self.start_line(caller, tool).record(&refused);
        self.start_console_report(caller, tool).record(&refused);
    }
}
