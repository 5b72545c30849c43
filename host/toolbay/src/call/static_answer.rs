//! Answers that need no guest: prompts and resources from files, and empty completions.

use std::collections::BTreeMap;

use toolbay_model::{CallFailure, CallObserver, CallReply};

use crate::approval::call_target::{CallTarget, StaticAnswer, empty_completions};
use crate::call::admit::AdmittedCall;
use crate::call::host_work::HostWork;
use crate::call::offload::TooLate;
use crate::call::ready_request::ReadyRequest;
use crate::call::resolve::ResolvedCall;
use crate::call::validate::CallInput;
use crate::call::view_grant::apply_view_grant;

/// Returns the reply from a file, as far as the grant allows it.
///
/// # Errors
///
/// There is no such file, or the reply exceeds a limit.
pub(crate) async fn answer_statically(
    answer: StaticAnswer,
    resolved: &ResolvedCall,
    admitted: &AdmittedCall<'_>,
    input: CallInput,
    observer: &dyn CallObserver,
) -> Result<CallReply, CallFailure> {
    let target = &resolved.target;
    let reply = read_file(&admitted.work, target, answer, input.request).await?;
    Ok(apply_view_grant(target, reply, observer))
}

/// Reads the reply from a file.
async fn read_file(
    work: &HostWork<'_>,
    target: &CallTarget,
    plain: StaticAnswer,
    request: ReadyRequest,
) -> Result<CallReply, CallFailure> {
    let (file, arguments) = match (plain, request) {
        (StaticAnswer::EmptyCompletion, _) => {
            return Ok(CallReply::Completion(empty_completions()));
        }
        (file, ReadyRequest::Prompt(arguments)) => (file, arguments),
        (file, _) => (file, BTreeMap::new()),
    };
    let most = target.plugin_context().limits.output;
    let read = work.run(move |_| match file {
        StaticAnswer::Prompt(prompt) => prompt
            .render(&arguments, most)
            .map(|output| Some(CallReply::Prompt(output))),
        StaticAnswer::Resource(file) => {
            Ok(file.read(most)?.map(|item| CallReply::Resource(vec![item])))
        }
        StaticAnswer::EmptyCompletion => Ok(Some(CallReply::Completion(empty_completions()))),
    });
    match read
        .await
        .unwrap_or_else(|TooLate| Err(work.deadline_error()))
    {
        Ok(Some(reply)) => Ok(reply),
        Ok(None) => Err(CallFailure::unknown(target.kind(), target.public_name())),
        Err(error) => Err(CallFailure::Call(target.with_tool_of_limit(error))),
    }
}
