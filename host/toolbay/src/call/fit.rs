//! Last stage of a call: turns its checked result into what its client receives.

use toolbay_model::{CallError, CallFailure, CallObserver, CallReply, CallResult, Digest};

use crate::approval::call_target::CallTarget;
use crate::call::admit::AdmittedCall;
use crate::call::approve::ApprovedCall;
use crate::call::argument_conversion::add_to_meta;
use crate::call::check::CheckedResult;
use crate::call::offload::TooLate;
use crate::call::resolve::ResolvedCall;
use crate::call::stored_results::{FittedOutput, StoredResults, truncate_message, truncate_output};
use crate::call::view_grant::apply_view_grant;

/// Fits a checked result to its client: restricts what it says about views; if it is too large,
/// truncates it and stores the whole result; and adds metadata about the call.
pub(crate) async fn fit(
    results: &StoredResults,
    resolved: &ResolvedCall,
    admitted: &AdmittedCall<'_>,
    approved: &ApprovedCall<'_>,
    checked: CheckedResult,
    observer: &dyn CallObserver,
) -> CallResult {
    let CheckedResult {
        result,
        size,
        usage,
    } = checked;
    let target = &resolved.target;
    let input = &approved.input;
    let shown = admitted.capacity.max_shown;
    let result = match result {
        Ok(Some(reply)) => {
            let reply = apply_view_grant(target, reply, observer);
            truncate_reply(
                results,
                target,
                admitted,
                reply,
                shown.filter(|most| size > *most),
            )
            .await
        }
        Ok(None) => Err(input.request.unknown_target(target)),
        Err(CallError::Incapable(kinds)) => Err(input.request.unanswerable(&kinds)),
        Err(error) => Err(CallFailure::Call(truncate_error(error, shown))),
    };
    let result = result.map(|mut reply| {
        if let CallReply::Tool(output) = &mut reply {
            add_to_meta(&mut output.meta, &input.converted);
        }
        with_edition(reply, resolved.edition)
    });
    CallResult {
        result,
        usage: Some(usage),
    }
}

/// Truncates a tool's result to at most `max_bytes` bytes, if it is larger, and stores the whole result.
///
/// # Errors
///
/// Structured content that the output schema requires does not fit, or the deadline passed.
async fn truncate_reply(
    results: &StoredResults,
    target: &CallTarget,
    admitted: &AdmittedCall<'_>,
    reply: CallReply,
    max_bytes: Option<usize>,
) -> Result<CallReply, CallFailure> {
    let (output, most, offer) = match (reply, max_bytes, target) {
        (CallReply::Tool(output), Some(most), CallTarget::Tool(offer)) => (output, most, offer),
        (reply, ..) => return Ok(reply),
    };
    let has_output_schema = offer.definition.output.is_some();
    let work = &admitted.work;
    let fitted = work
        .run(move |_| truncate_output(output, most, has_output_schema))
        .await;
    match fitted {
        Ok(FittedOutput::Truncated(fitted)) => {
            let is_broken = has_output_schema && fitted.is_unstructured;
            let shown = fitted.into_output(target.public_name(), |whole| {
                results.store(&admitted.client.admission.name, whole)
            });
            // A client would not accept such a result as successful.
            if is_broken {
                Err(CallFailure::Oversized(Box::new(shown)))
            } else {
                Ok(CallReply::Tool(shown))
            }
        }
        Ok(FittedOutput::Whole(output)) => Ok(CallReply::Tool(output)),
        Err(TooLate) => Err(CallFailure::Call(
            target.with_tool_of_limit(work.deadline_error()),
        )),
    }
}

/// Truncates the message of a failure to at most `max_bytes` bytes.
fn truncate_error(mut error: CallError, most: Option<usize>) -> CallError {
    if let (CallError::Failed(text) | CallError::InvalidArguments(text), Some(most)) =
        (&mut error, most)
    {
        truncate_message(text, most);
    }
    error
}

/// Returns the reply, with the edition of the plugin that must handle the answers to its questions.
fn with_edition(reply: CallReply, edition: Digest) -> CallReply {
    match reply {
        CallReply::Questions(mut round) => {
            round.journal.edition = Some(edition);
            CallReply::Questions(round)
        }
        reply => reply,
    }
}
