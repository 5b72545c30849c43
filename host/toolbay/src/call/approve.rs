//! Fourth stage of a call: asks a person for approval, if the plugin's grant requires it.

use std::sync::Arc;

use sha2::{Digest as _, Sha256};
use tokio::time::timeout_at;
use toolbay_catalog::{ApprovalPolicy, Approver, ComponentCode, ToolOffer};
use toolbay_model::{
    CallError, CallFailure, CallJournal, Digest, Interrupt, Question, QuestionRound,
    QuestionSubject,
};

use crate::approval::ruling::{
    self, ApprovalCase, ApprovalRuling, ApprovalScope, ApprovalStep, ApprovalValidity,
    REMEMBERED_OUTCOME,
};
use crate::call::admit::AdmittedCall;
use crate::call::host_work::{HostWork, MAX_INLINE_BYTES};
use crate::call::offload::TooLate;
use crate::call::resolve::ResolvedCall;
use crate::call::validate::{CallInput, ValidatedCall};
use crate::observe::call_event::{CallEvent, CallSink as _};
use crate::observe::call_report::CallReport;

/// A call that may enter the guest: it needs no approval, or has one.
pub(crate) struct ApprovedCall<'a> {
    /// The code of the plugin.
    pub(crate) code: &'a ComponentCode,
    pub(crate) input: CallInput,
    /// The journal with which the guest is entered.
    pub(crate) journal: Arc<CallJournal>,
}

/// Decision about a call that the approval stage does not refuse.
pub(crate) enum EntryDecision<T> {
    /// The guest may be entered.
    Enter(T),
    /// The call ends with a question to the user. It runs again with the answer.
    Ask(QuestionRound),
}

/// Decides whether a call may enter the guest, and reports the decision to its sinks.
///
/// # Errors
///
/// The call is refused, or the question was not ready before the deadline.
pub(crate) async fn approve<'a>(
    resolved: &'a ResolvedCall,
    admitted: &AdmittedCall<'_>,
    validated: ValidatedCall,
    report: &mut CallReport<'_>,
) -> Result<EntryDecision<ApprovedCall<'a>>, CallFailure> {
    let target = &resolved.target;
    let Some(code) = &target.plugin().component.code else {
        return Err(CallFailure::Call(CallError::Internal(
            "the plugin has no code".to_owned(),
        )));
    };
    let ValidatedCall {
        input,
        digest,
        journal,
        session,
        ..
    } = validated;
    let case = ApprovalCase::for_target(
        target,
        &admitted.record.approvals,
        ApprovalScope::for_request(session, admitted.client.admission.identity.as_ref()),
        input.answerable,
    );
    let outcome = match case {
        Some(case) => {
            let arguments = (input.request.text(), digest);
            decide(&case, admitted, journal, arguments, report)
                .await
                .map_err(|failure| match failure {
                    CallFailure::Call(error) => CallFailure::Call(target.with_tool_of_limit(error)),
                    failure => failure,
                })?
        }
        None => EntryDecision::Enter(journal),
    };
    Ok(match outcome {
        EntryDecision::Enter(journal) => EntryDecision::Enter(ApprovedCall {
            code,
            input,
            journal,
        }),
        EntryDecision::Ask(mut round) => {
            round.journal.edition = Some(resolved.edition);
            EntryDecision::Ask(round)
        }
    })
}

/// Returns the journal with which to enter the guest, or the question to the user. `arguments` are
/// the text of the arguments and their digest, if it is known.
async fn decide(
    case: &ApprovalCase<'_>,
    admitted: &AdmittedCall<'_>,
    journal: Arc<CallJournal>,
    arguments: (&str, Option<Digest>),
    report: &mut CallReport<'_>,
) -> Result<EntryDecision<Arc<CallJournal>>, CallFailure> {
    let ApprovalRuling { step, decision } = case.decide(Arc::unwrap_or_clone(journal));
    let is_shown = report.sinks().server().console().is_some()
        && decision
            .as_ref()
            .is_some_and(|decision| decision.outcome != REMEMBERED_OUTCOME);
    let digest = if matches!(step, ApprovalStep::Ask(..)) || is_shown {
        Some(arguments_digest(&admitted.work, arguments).await?)
    } else {
        None
    };
    let outcome = match step {
        ApprovalStep::Enter(journal) => Ok(EntryDecision::Enter(Arc::new(journal))),
        ApprovalStep::End(failure) => Err(failure),
        ApprovalStep::Ask(mut journal, policy) => {
            journal.subject = digest.map(|arguments| {
                Box::new(QuestionSubject {
                    plugin: case.offer.plugin.id.clone(),
                    tool: case.offer.tool.name.clone(),
                    arguments,
                    covered_calls: ApprovalValidity::from_policy(policy, case.scope)
                        .covered_calls(),
                    is_for_operator: case.offer.approver() == Approver::Console,
                })
            });
            // If this fails, the user is not asked, and no decision is recorded.
            let question = approval_question(case, admitted, arguments.0, policy).await?;
            Ok(EntryDecision::Ask(QuestionRound {
                questions: vec![question],
                journal,
            }))
        }
    };
    if let Some(decision) = &decision {
        let decided = CallEvent::ApprovalDecided {
            offer: case.offer,
            caller: &admitted.client.admission.name,
            decision,
            arguments: digest.filter(|_| is_shown),
        };
        report
            .commit(&decided)
            .await
            .map_err(CallFailure::Rejected)?;
    }
    outcome
}

/// Returns the SHA-256 digest of the arguments, unless it is already known.
///
/// # Errors
///
/// The digest was not computed before the deadline.
async fn arguments_digest(
    work: &HostWork<'_>,
    (arguments, known): (&str, Option<Digest>),
) -> Result<Digest, CallFailure> {
    let hash = |text: &str| Digest::new(Sha256::digest(text).into());
    match known {
        Some(known) => Ok(known),
        None if arguments.len() <= MAX_INLINE_BYTES => Ok(hash(arguments)),
        None => {
            let arguments = arguments.to_owned();
            work.run(move |_: &Interrupt| hash(&arguments))
                .await
                .map_err(|TooLate| CallFailure::Call(work.deadline_error()))
        }
    }
}

/// Returns the question that asks the user to allow a call with these arguments. Secrets in the
/// arguments are redacted.
async fn approval_question(
    case: &ApprovalCase<'_>,
    admitted: &AdmittedCall<'_>,
    arguments: &str,
    asks: ApprovalPolicy,
) -> Result<Question, CallFailure> {
    let offer: &Arc<ToolOffer> = case.offer;
    let validity = ApprovalValidity::from_policy(asks, case.scope);
    let work = &admitted.work;
    let vault = &offer
        .plugin
        .tool_context(&offer.definition.tool.name)
        .secrets;
    // A secret can be in a file, and a file system can hang.
    let opened = timeout_at(
        work.deadline.into(),
        vault.open(admitted.client.admission.identity.as_ref()),
    )
    .await
    .map_err(|_| CallFailure::Call(work.deadline_error()))?;
    let opened = opened.map_err(|error| CallFailure::Call(CallError::Internal(error)))?;
    if arguments.len() <= MAX_INLINE_BYTES {
        return Ok(ruling::approval_question(
            offer,
            arguments,
            &opened.filter,
            validity,
        ));
    }
    let offer = Arc::clone(offer);
    let arguments = arguments.to_owned();
    let ask = move |_: &Interrupt| {
        ruling::approval_question(&offer, &arguments, &opened.filter, validity)
    };
    work.run(ask)
        .await
        .map_err(|TooLate| CallFailure::Call(work.deadline_error()))
}
