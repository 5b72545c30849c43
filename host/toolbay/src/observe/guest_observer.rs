//! Turns what a running guest reports into events of its call.

use std::fmt::Write as _;
use std::sync::Arc;

use parking_lot::Mutex;
use toolbay_catalog::MatchBudget;
use toolbay_console::CallProgress;
use toolbay_model::{
    CallObserver, DenialKind, HttpExchange, LogLevel, ProgressUpdate, TraceContext,
};

use crate::approval::call_target::CallTarget;
use crate::observe::call_audit_lines::DenialRecorder;
use crate::observe::call_event::{CallEvent, CallSink};
use crate::observe::call_log::CallLog;
use crate::observe::call_sinks::CallSinks;
use crate::observe::console_report::TrailRecorder;
use crate::observe::server_observers::ServerObservers;

/// Maximum length of a listed progress message, in bytes.
const MAX_PROGRESS_BYTES: usize = 200;

/// Observer of a running guest that also reports its log messages and denials to the server's
/// sinks. The guest's threads share it, so it reaches only sinks that they can share.
pub(crate) struct GuestObserver {
    inner: Arc<dyn CallObserver>,
    target: Arc<CallTarget>,
    server: Arc<ServerObservers>,
    /// Recorder of denials in the audit log, if there is one.
    denials: Option<DenialRecorder>,
    /// Recorder for the page of the call in the console, if there is one.
    trail: Option<TrailRecorder>,
    /// Receiver of the progress, if the call is listed as running.
    progress: Option<CallProgress>,
    /// Remaining budget for matching the URIs of changed resources that the call names.
    match_budget: Mutex<MatchBudget>,
}

impl GuestObserver {
    /// Wraps the observer of a call of `target`.
    pub(crate) fn wrap(
        inner: Arc<dyn CallObserver>,
        target: &Arc<CallTarget>,
        sinks: &CallSinks,
    ) -> Arc<dyn CallObserver> {
        Arc::new(Self {
            inner,
            target: Arc::clone(target),
            server: Arc::clone(sinks.server()),
            denials: sinks.denial_recorder(),
            trail: sinks.trail_recorder(),
            progress: sinks.progress(),
            match_budget: Mutex::new(MatchBudget::new(MatchBudget::PER_URI)),
        })
    }

    fn report(&self, event: &CallEvent<'_>) {
        let server = &self.server;
        server.metrics().map(Arc::as_ref).record(event);
        server.learner().record(event);
        CallLog(server.counters()).record(event);
        self.denials.as_ref().record(event);
        self.trail.as_ref().record(event);
        server.console().record(event);
    }
}

impl CallObserver for GuestObserver {
    fn log(&self, level: LogLevel, message: &str) {
        self.report(&CallEvent::GuestLogged {
            target: &self.target,
            level,
            message,
        });
        self.inner.log(level, message);
    }

    fn progress(&self, progress: ProgressUpdate) {
        if let Some(listed) = &self.progress {
            listed.set(progress_text(&progress));
        }
        self.inner.progress(progress);
    }

    fn denied(&self, kind: DenialKind, what: &str, remedy: Option<&str>) {
        self.report(&CallEvent::Denied {
            target: &self.target,
            kind,
            what,
            remedy,
        });
        self.inner.denied(kind, what, remedy);
    }

    fn resource_updated(&self, uri: &str) {
        // A plugin may only report changes of its own resources.
        let is_own = {
            let mut steps = self.match_budget.lock();
            self.target.plugin().offers_resource(uri, &mut steps)
        };
        if is_own {
            self.inner.resource_updated(uri);
        }
    }

    fn start_http_span(&self, call: &TraceContext) -> Option<TraceContext> {
        self.server.tracer()?.begin_request(call)
    }

    fn http_exchange_ended(&self, exchange: HttpExchange) {
        if let Some(tracer) = self.server.tracer() {
            tracer.export_exchange(exchange);
        }
    }

    fn guest_output(&self, stdout: &str, stderr: &str) {
        self.inner.guest_output(stdout, stderr);
    }

    fn is_cancelled(&self) -> bool {
        self.inner.is_cancelled()
    }
}

/// Returns progress in words, such as `3/10 pages read`.
fn progress_text(update: &ProgressUpdate) -> String {
    let mut text = update.progress.to_string();
    if let Some(total) = update.total {
        let _ = write!(text, "/{total}");
    }
    if let Some(message) = &update.message {
        let end = message.floor_char_boundary(MAX_PROGRESS_BYTES);
        let _ = write!(text, " {}", message.get(..end).unwrap_or_default());
    }
    text
}
