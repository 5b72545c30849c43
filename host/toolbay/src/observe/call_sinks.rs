//! The sinks of one call, in the order in which they receive its events.

use std::sync::Arc;

use tokio::sync::Notify;
use toolbay_audit::ArgumentsRecord;
use toolbay_console::{CallProgress, RunningCallEntry};
use toolbay_mcp::ClientCall;
use toolbay_model::{CallRejection, TraceContext};
use toolbay_sandbox::ReplayTape;

use crate::approval::call_target::CallTarget;
use crate::observe::call_audit_lines::{CallAuditLines, DenialRecorder};
use crate::observe::call_event::{CallEvent, CallSink};
use crate::observe::call_log::CallLog;
use crate::observe::call_recording::CallRecording;
use crate::observe::call_span::CallSpan;
use crate::observe::console_report::{ConsoleReport, TrailRecorder};
use crate::observe::metrics::PluginMeters;
use crate::observe::outcome_counters::PendingCount;
use crate::observe::server_observers::ServerObservers;

/// The sinks of one call. Each records the call, however it ends: a sink that is dropped before
/// [`CallEvent::Ended`] records a cancellation.
pub(crate) struct CallSinks {
    server: Arc<ServerObservers>,
    count: PendingCount,
    /// The call's lines in the audit log, if there is one.
    line: Option<CallAuditLines>,
    /// The call's report to the console, if there is one.
    console: Option<ConsoleReport>,
    /// The call's entry among the running calls, if the console does not have it.
    running: Option<RunningCallEntry>,
    /// The recording of the call, if calls are recorded.
    recording: Option<CallRecording>,
    /// The call's span, if spans are exported.
    span: Option<CallSpan>,
}

/// The extent to which sinks record arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ArgumentDetail {
    /// No sink records arguments.
    Nothing,
    /// A digest.
    Digest,
    /// A digest, and the text without secrets.
    Text,
}

impl CallSinks {
    /// Starts the sinks of a call of `tool`.
    pub(crate) fn start(server: &Arc<ServerObservers>, caller: &str, tool: &str) -> Self {
        Self {
            count: server.counters().begin(tool),
            line: server.start_line(caller, tool),
            console: server.start_console_report(caller, tool),
            running: server.start_running_call(caller, tool),
            recording: server.recording().map(CallRecording::new),
            span: server.tracer().map(|tracer| CallSpan::new(tracer, caller)),
            server: Arc::clone(server),
        }
    }

    /// Returns the server's observers.
    pub(crate) fn server(&self) -> &Arc<ServerObservers> {
        &self.server
    }

    /// Returns the trace context of the call's own span, if there is one.
    pub(crate) fn trace(&self) -> Option<&TraceContext> {
        self.span.as_ref()?.context()
    }

    /// Returns the span that the call's log lines refer to.
    pub(crate) fn log_span(&self) -> tracing::Span {
        self.span
            .as_ref()
            .map_or_else(tracing::Span::none, CallSpan::log_span)
    }

    /// Returns a handle with which the progress of the call is reported, if it is listed.
    pub(crate) fn progress(&self) -> Option<CallProgress> {
        let console = self.console.as_ref().map(ConsoleReport::progress);
        console.or_else(|| self.running.as_ref().map(RunningCallEntry::progress))
    }

    /// Returns the signal that an operator stops the call, if running calls are listed.
    pub(crate) fn stop_signal(&self) -> Option<Arc<Notify>> {
        let console = self.console.as_ref().map(ConsoleReport::stop_signal);
        console.or_else(|| self.running.as_ref().map(RunningCallEntry::stop_signal))
    }

    /// Returns the extent to which sinks record arguments.
    pub(crate) fn argument_detail(&self) -> ArgumentDetail {
        let is_text_shown = self
            .console
            .as_ref()
            .is_some_and(ConsoleReport::includes_contents);
        let is_text_recorded = self
            .line
            .as_ref()
            .is_some_and(CallAuditLines::records_full_arguments);
        if is_text_shown || is_text_recorded {
            ArgumentDetail::Text
        } else if self.line.is_some() {
            ArgumentDetail::Digest
        } else {
            ArgumentDetail::Nothing
        }
    }

    /// Returns the recorder of denials in the audit log, if there is one.
    pub(crate) fn denial_recorder(&self) -> Option<DenialRecorder> {
        self.line.as_ref().map(CallAuditLines::denial_recorder)
    }

    /// Returns the recorder of the guest's messages for the console, if there is one.
    pub(crate) fn trail_recorder(&self) -> Option<TrailRecorder> {
        self.console.as_ref().map(ConsoleReport::trail_recorder)
    }

    /// Returns the tape that the sandbox records to.
    pub(crate) fn tape(&self) -> ReplayTape {
        self.recording
            .as_ref()
            .map(CallRecording::tape)
            .unwrap_or_default()
    }

    /// Records the target of the call.
    pub(crate) fn record_target(
        &mut self,
        target: &CallTarget,
        meters: &PluginMeters,
        is_completion: bool,
        call: &ClientCall,
    ) {
        let Self {
            count,
            line,
            console,
            running,
            span,
            ..
        } = self;
        if let Some(entry) = running {
            entry.set_plugin(&target.plugin().id);
        }
        let found = |trace| CallEvent::Resolved {
            target,
            meters,
            is_completion,
            trace,
        };
        span.record(&found(None));
        // The audit log names the trace of the call's own span.
        let own = span.as_ref().and_then(CallSpan::context);
        let found = found(own.or(call.trace.as_ref()));
        line.record(&found);
        count.record(&found);
        console.record(&found);
    }

    /// Records the arguments of the call. The audit log receives their text, which can be long,
    /// without a copy.
    pub(crate) fn record_arguments(&mut self, arguments: ArgumentsRecord) {
        self.console
            .record(&CallEvent::ArgumentsRecorded(&arguments));
        if let Some(line) = &mut self.line {
            line.set_arguments(arguments);
        }
    }
}

impl CallSink for CallSinks {
    fn record(&mut self, event: &CallEvent<'_>) {
        CallLog(self.server.counters()).record(event);
        self.line.record(event);
        self.count.record(event);
        self.console.record(event);
        self.server.console().record(event);
        self.recording.record(event);
        self.span.record(event);
    }

    async fn commit(&mut self, event: &CallEvent<'_>) -> Result<(), CallRejection> {
        CallLog(self.server.counters()).record(event);
        self.line.commit(event).await?;
        self.count.record(event);
        self.console.record(event);
        self.server.console().record(event);
        self.recording.record(event);
        self.span.record(event);
        Ok(())
    }
}
