//! A call of a tool from a page of the console.

use std::sync::Arc;

use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use toolbay_catalog::Snapshot;
use toolbay_console::ConsoleCallOutcome;
use toolbay_mcp::{CallerRights, ClientCall, ClientShare, Revision, result_json};
use toolbay_model::{
    CallFailure, CallJournal, CallReply, CallRequest, CallResult, Digest, NoopObserver,
    QuestionKind, QuestionKindSet, TargetKind,
};

use crate::approval::ruling;
use crate::call::service::CallService;
use crate::observe::call_outcome::OutcomeLabel;

/// Calls a tool. If the call requires approval, approves it if `approved_question` is the digest of
/// the question and the edition of the plugin. Otherwise, returns the question. `operator` is the name of the viewer.
pub(super) async fn call_tool(
    service: CallService,
    client: Arc<dyn ClientShare>,
    tool: String,
    arguments: Map<String, Value>,
    permitted: bool,
    approved_question: Option<Digest>,
    operator: String,
) -> ConsoleCallOutcome {
    let needs_approval = requires_approval(&service.catalog().snapshot(), &tool);
    let answerable = if needs_approval {
        QuestionKindSet::default().with(QuestionKind::Form)
    } else {
        QuestionKindSet::default()
    };
    let run_call = async |answerable: QuestionKindSet, journal: CallJournal| {
        let request = CallRequest::Tool {
            name: tool.clone(),
            arguments: arguments.clone(),
        };
        let call = ClientCall {
            is_permitted: permitted,
            // A page lists the tools: nothing is suggested.
            rights: CallerRights::Only(Vec::new()),
            ..ClientCall::without_client(request, answerable, journal)
        };
        match client.enqueue(&tool) {
            Ok(mut place) => place.call(call, Arc::new(NoopObserver)).await,
            Err(rejection) => CallResult {
                result: Err(CallFailure::Rejected(rejection)),
                usage: None,
            },
        }
    };
    let mut answer = run_call(answerable, CallJournal::default()).await;
    let Ok(CallReply::Questions(round)) = &mut answer.result else {
        return call_outcome(answer);
    };
    let Some(question) = ruling::question_text(&round.questions) else {
        // These are the plugin's own questions, because its grant changed just now. No client can
        // answer them.
        let kinds: Vec<_> = round
            .questions
            .iter()
            .map(|question| question.kind)
            .collect();
        let failure = CallFailure::MissingCapabilities(QuestionKind::capabilities(&kinds));
        return call_outcome(CallResult {
            result: Err(failure),
            ..answer
        });
    };
    let digest = question_digest(&question, round.journal.edition);
    if approved_question != Some(digest) {
        return ConsoleCallOutcome::Question(question, digest);
    }
    let mut journal = std::mem::take(&mut round.journal);
    if journal.is_for_operator() {
        journal.operator = Some(operator);
    }
    journal
        .answers
        .insert(ruling::APPROVAL_KEY.to_owned(), ruling::answer_json(true));
    call_outcome(run_call(QuestionKindSet::default(), journal).await)
}

/// Returns the digest of a question and of the edition of the plugin that it is about. The viewer
/// approves the version that the page was about, and the plugin can have changed since then.
fn question_digest(question: &str, edition: Option<Digest>) -> Digest {
    let mut hash = Sha256::new();
    if let Some(edition) = edition {
        hash.update(edition.bytes());
    }
    hash.update(question);
    Digest::new(hash.finalize().into())
}

/// Returns whether a call of the tool requires approval by a person.
fn requires_approval(snapshot: &Snapshot, tool: &str) -> bool {
    snapshot
        .tools
        .get(tool)
        .is_some_and(|offer| offer.approval_policy().is_some())
}

/// Returns the outcome of a call, in the form that a client receives.
pub(super) fn call_outcome(answer: CallResult) -> ConsoleCallOutcome {
    let outcome = OutcomeLabel::from_answer(&answer).as_str();
    let usage = answer.usage;
    ConsoleCallOutcome::Ended {
        result: result_json(answer, TargetKind::Tool, Revision::NEWEST),
        outcome,
        usage,
    }
}
