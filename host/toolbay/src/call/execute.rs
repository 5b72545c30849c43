//! Fifth stage of a call: runs the guest.

use std::sync::Arc;

use toolbay_model::{CallError, CallObserver, TraceContext};
use toolbay_sandbox::{CallContext, FinishedCall, HostDenial, Sandbox, UncheckedReply};
use tracing::Instrument as _;

use crate::call::admit::AdmittedCall;
use crate::call::approve::ApprovedCall;
use crate::call::budget::BudgetCharge;
use crate::call::resolve::ResolvedCall;
use crate::observe::call_event::{CallEvent, CallSink as _};
use crate::observe::call_report::CallReport;
use crate::observe::guest_run::GuestRun;

/// A call whose guest returned, or could not be entered.
pub(crate) struct ExecutedCall {
    /// The guest's reply, which is neither checked nor cleaned.
    pub(crate) reply: Result<UncheckedReply, CallError>,
    pub(crate) run: GuestRun,
    /// The first denial that the guest received.
    pub(crate) denial: Option<HostDenial>,
    /// The span that the log lines of the guest refer to.
    pub(crate) span: tracing::Span,
}

/// Runs the guest of a call. `charge` bounds what it can use, if its plugin has a budget.
pub(crate) async fn execute(
    sandbox: &Sandbox,
    resolved: &ResolvedCall,
    admitted: &AdmittedCall<'_>,
    approved: &ApprovedCall<'_>,
    charge: Option<&BudgetCharge>,
    observer: &Arc<dyn CallObserver>,
    report: &mut CallReport<'_>,
) -> ExecutedCall {
    let ApprovedCall {
        code,
        input,
        journal,
    } = approved;
    // If the call already has a span, the log has had it from the start.
    let (trace, span) = report.sinks().trace().map_or_else(
        || start_trace(input.trace.as_ref()),
        |own| (Some(own.clone()), tracing::Span::none()),
    );
    let target = &resolved.target;
    report.record(&CallEvent::GuestEntering {
        target,
        arguments: input.request.text(),
        journal,
        answerable: input.answerable,
        kept: admitted.capacity.kept,
    });
    let restricted = charge.map(|charge| charge.restrict(target.plugin_context()));
    let context = CallContext {
        environment: restricted
            .as_ref()
            .unwrap_or_else(|| target.plugin_context()),
        caller: admitted.client.admission.identity.as_ref(),
        trace: trace.as_ref(),
        observer: Arc::clone(observer),
        answerable: input.answerable,
        journal: Arc::clone(journal),
        deadline: admitted.work.deadline,
        tape: report.sinks().tape(),
        compute_permit: Some(&*admitted.work.permit),
    };
    let request = input.request.guest_request(target.name());
    let running = async {
        let timeout = target.plugin_context().limits.timeout;
        match code.open(admitted.work.deadline, timeout).await {
            Ok(prepared) => sandbox.call(&prepared, context, request).await,
            Err(error) => FinishedCall::without_guest(Err(error)),
        }
    };
    let finished = running.instrument(span.clone()).await;
    let (reply, run, denial) = GuestRun::split(finished);
    report.record(&CallEvent::GuestReturned(&run));
    // Standard output of a command is its result.
    let printed = if code.is_command() { "" } else { &run.stdout };
    observer.guest_output(printed, &run.stderr);
    ExecutedCall {
        reply,
        run,
        denial,
        span,
    }
}

/// Creates the trace of a call within that of its request, and a log span with the ids of both.
fn start_trace(parent: Option<&TraceContext>) -> (Option<TraceContext>, tracing::Span) {
    let Some(parent) = parent else {
        return (None, tracing::Span::none());
    };
    let own = child_trace(parent);
    let span = tracing::info_span!(
        "call",
        trace_id = own.trace_id,
        parent_id = parent.span_id,
        span_id = own.span_id
    );
    (Some(own), span)
}

/// Creates a new span of the trace for the call. Without random bytes, the parent's span is used.
fn child_trace(parent: &TraceContext) -> TraceContext {
    let mut id = [0; 8];
    parent.child(if getrandom::fill(&mut id).is_ok() {
        id
    } else {
        [0; 8]
    })
}
