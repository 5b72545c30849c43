//! Third stage of a call: checks its arguments, and makes sure that the audit log can record it.

use std::sync::Arc;

use toolbay_mcp::{ClientCall, QuotaPortion};
use toolbay_model::{CallFailure, CallJournal, CallRequest, Digest, QuestionKindSet, TraceContext};
use toolbay_schema::ValueConversion;

use crate::approval::call_target::{CallTarget, StaticAnswer};
use crate::call::admit::AdmittedCall;
use crate::call::argument_check::{CheckedRequest, check_request};
use crate::call::argument_conversion::with_corrections;
use crate::call::offload::TooLate;
use crate::call::ready_request::ReadyRequest;
use crate::call::resolve::ResolvedCall;
use crate::observe::argument_recorder::ArgumentRecorder;
use crate::observe::call_event::{CallEvent, CallSink as _};
use crate::observe::call_report::CallReport;
use crate::observe::call_sinks::ArgumentDetail;

/// A call with valid arguments. All checks that can reject it without a guest or a person are done,
/// and the audit log has room for its lines.
pub(crate) struct ValidatedCall {
    pub(crate) input: CallInput,
    /// Digest of the arguments, if a sink recorded it.
    pub(crate) digest: Option<Digest>,
    /// The answer, if no guest is needed.
    pub(crate) static_answer: Option<StaticAnswer>,
    /// The journal of earlier runs of the call.
    pub(crate) journal: Arc<CallJournal>,
    /// The number of the client's session; `None` for a request without a session.
    pub(crate) session: Option<u64>,
}

/// The valid input of a call, as its guest receives it.
pub(crate) struct CallInput {
    pub(crate) request: ReadyRequest,
    /// Arguments that were converted because their form did not match the schema.
    pub(crate) converted: Vec<ValueConversion>,
    /// The kinds of questions that the client can answer.
    pub(crate) answerable: QuestionKindSet,
    /// The caller's span; `None` if the call belongs to no trace.
    pub(crate) trace: Option<TraceContext>,
    /// Reservation for the bytes of the request and the journal.
    _bytes: QuotaPortion,
}

/// Checks the arguments of a call, and reports them to its sinks.
///
/// # Errors
///
/// The arguments are invalid, the check did not complete before the deadline, or the call cannot be
/// recorded.
pub(crate) async fn validate(
    resolved: &ResolvedCall,
    admitted: &AdmittedCall<'_>,
    call: ClientCall,
    report: &mut CallReport<'_>,
) -> Result<ValidatedCall, CallFailure> {
    let target = &resolved.target;
    let static_answer = target.static_answer(&call.request);
    let CheckedRequest {
        request,
        violations,
        record,
        converted,
    } = check_call(resolved, admitted, call.request, report).await?;
    let digest = record.as_ref().and_then(|record| record.digest);
    if let Some(record) = record {
        report.sinks().record_arguments(record);
    }
    // Only the text of the request and the data of an earlier run remain.
    let mut bytes = call.reservation;
    bytes.shrink_to(request.size() + call.journal.size());
    if !violations.is_empty() {
        return Err(target.invalid_arguments(violations));
    }
    let converted = with_corrections(&call.corrected, converted);
    if !converted.is_empty() {
        report.record(&CallEvent::ArgumentsConverted {
            target,
            caller: &admitted.client.admission.name,
            converted: &converted,
        });
    }
    let permitted = CallEvent::Permitted {
        deadline: admitted.work.deadline,
    };
    report
        .commit(&permitted)
        .await
        .map_err(CallFailure::Rejected)?;
    Ok(ValidatedCall {
        input: CallInput {
            request,
            converted,
            answerable: call.answerable,
            trace: call.trace,
            _bytes: bytes,
        },
        digest,
        static_answer,
        journal: call.journal,
        session: call.session,
    })
}

/// Checks the request of a call, and records its arguments if a sink needs them.
async fn check_call(
    resolved: &ResolvedCall,
    admitted: &AdmittedCall<'_>,
    request: CallRequest,
    report: &mut CallReport<'_>,
) -> Result<CheckedRequest, CallFailure> {
    let ResolvedCall {
        target, is_lenient, ..
    } = resolved;
    let recorder = open_recorder(target, admitted, report.sinks().argument_detail()).await;
    check_request(&admitted.work, target, request, recorder, *is_lenient)
        .await
        .map_err(|TooLate| {
            let error = target.with_tool_of_limit(admitted.work.deadline_error());
            report.record(&CallEvent::CheckStopped {
                target,
                error: &error,
            });
            CallFailure::Call(error)
        })
}

/// Opens the recorder of the call's arguments, if a sink records them.
async fn open_recorder(
    target: &CallTarget,
    admitted: &AdmittedCall<'_>,
    detail: ArgumentDetail,
) -> Option<ArgumentRecorder> {
    if detail == ArgumentDetail::Nothing {
        return None;
    }
    let recorder = ArgumentRecorder::open(
        detail == ArgumentDetail::Text,
        &target.plugin_context().secrets,
        admitted.client.admission.identity.as_ref(),
        admitted.work.deadline,
    );
    Some(recorder.await)
}
