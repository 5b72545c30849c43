//! Sixth stage of a call: checks the guest's result, and updates the usage and the circuit breaker
//! of its plugin.

use std::sync::Arc;

use toolbay_model::{CallError, CallReply, CallUsage, Interrupt};
use toolbay_sandbox::UncheckedReply;
use tracing::Instrument as _;

use crate::approval::call_target::CallTarget;
use crate::call::admission::CallAdmission;
use crate::call::admit::AdmittedCall;
use crate::call::execute::ExecutedCall;
use crate::call::host_work::MAX_INLINE_BYTES;
use crate::call::offload::TooLate;
use crate::call::output_validation::{pair_with_schema, reject_violations};
use crate::call::resolve::ResolvedCall;
use crate::observe::call_event::{CallEvent, CallSink as _};
use crate::observe::call_report::CallReport;

/// The result of a guest, within its bounds, the contract and a tool's output schema.
pub(crate) struct CheckedResult {
    /// The reply; `None` if there is no such resource.
    pub(crate) result: Result<Option<CallReply>, CallError>,
    /// The number of bytes that the guest returned.
    pub(crate) size: usize,
    pub(crate) usage: CallUsage,
}

/// The parts of a check that are left for another thread.
enum PendingCheck {
    /// The whole reply is unchecked.
    Reply(UncheckedReply),
    /// The reply is checked. The structured content may not match the tool's output schema.
    Schema(Option<CallReply>),
}

/// Checks the result of a guest, and reports it to the sinks of the call.
pub(crate) async fn check(
    admission: &CallAdmission,
    resolved: &ResolvedCall,
    admitted: &AdmittedCall<'_>,
    executed: ExecutedCall,
    report: &mut CallReport<'_>,
) -> CheckedResult {
    let ExecutedCall {
        reply,
        run,
        denial,
        span,
    } = executed;
    let ResolvedCall {
        target, activity, ..
    } = resolved;
    let is_crash = matches!(reply, Err(CallError::Trap { .. }));
    let (size, result) = match reply {
        Ok(reply) => (
            reply.size(),
            check_reply(target, admitted, reply)
                .instrument(span.clone())
                .await,
        ),
        Err(error) => (0, Err(error)),
    };
    report.record(&CallEvent::ResultChecked {
        result: &result,
        size,
        run: &run,
    });
    let result = match denial {
        Some(denial) => result.map_err(|error| denial.explain(error)),
        None => result,
    };
    activity
        .usage
        .record(run.usage, matches!(result, Err(CallError::Limit { .. })));
    admission.record_crash(
        &admitted.record,
        activity,
        is_crash,
        &target.plugin().id,
        &admitted.client.admission.name,
    );
    let result = result.map_err(|error| target.with_tool_of_limit(error));
    span.in_scope(|| report.record_outcome(target, &result, &run));
    CheckedResult {
        result,
        size,
        usage: run.usage,
    }
}

/// Checks a guest's reply against its bounds, the contract and a tool's output schema. Returns
/// `None` if there is no such resource.
async fn check_reply(
    target: &Arc<CallTarget>,
    admitted: &AdmittedCall<'_>,
    returned: UncheckedReply,
) -> Result<Option<CallReply>, CallError> {
    let work = &admitted.work;
    let kept = admitted.capacity.kept;
    let limits = &target.plugin_context().limits;
    let pending = if returned.size() <= MAX_INLINE_BYTES {
        let reply = returned.check(limits, kept, &Interrupt::with_deadline(work.deadline))?;
        match pair_with_schema(target.output_schema(), reply.as_ref())? {
            None => return Ok(reply),
            Some((schema, structured)) => {
                if let Some(violations) = schema.quick_violations(structured) {
                    return reject_violations(reply, &violations);
                }
            }
        }
        PendingCheck::Schema(reply)
    } else {
        PendingCheck::Reply(returned)
    };
    let target = Arc::clone(target);
    let deadline_error = work.deadline_error();
    let checked = work.run(move |interrupt| {
        let reply = match pending {
            PendingCheck::Reply(returned) => {
                returned.check(&target.plugin_context().limits, kept, interrupt)?
            }
            PendingCheck::Schema(reply) => reply,
        };
        let Some((schema, structured)) = pair_with_schema(target.output_schema(), reply.as_ref())?
        else {
            return Ok(reply);
        };
        let violations = schema
            .violations_until(structured, interrupt)
            .map_err(|_| deadline_error)?;
        reject_violations(reply, &violations)
    });
    checked
        .await
        .unwrap_or_else(|TooLate| Err(work.deadline_error()))
}
