//! Approval of calls by a person, if the operator requires it (`require_approval` in a grant).
//!
//! The host asks for the approval after it has validated the arguments and before it enters the
//! guest. It uses the same path as a guest's questions to the user. The state and the outcome of
//! the approval are in the call's journal, which only the host writes. A client holds it sealed,
//! and bound to the arguments, the caller and the edition of the plugin. An answer therefore counts
//! only if the host asked, and a guest never receives one.

mod approval_question;
mod excerpt;
mod json_escape;
mod permission_text;
mod remembered_approvals;
mod waiting_calls;

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::Deserialize;
use serde_json::value::RawValue;
use toolbay_catalog::{ApprovalPolicy, Approver, ToolOffer};
use toolbay_model::{
    ApprovalState, CallFailure, CallJournal, MissingApproval, MissingApprovalReason, Question,
    QuestionKind, QuestionKindSet, milliseconds,
};

pub(crate) use self::approval_question::{ApprovalValidity, approval_question};
pub(crate) use self::permission_text::permission_lines;
pub(crate) use self::remembered_approvals::{ApprovalScope, RememberedApprovals};
pub(crate) use self::waiting_calls::{ApprovalSubject, WaitingApprovals};
use crate::approval::call_target::CallTarget;

/// Key of the host's question. Keys of plugins cannot contain a slash (`toolbay_sandbox`).
pub(crate) const APPROVAL_KEY: &str = "dev.toolbay/approval";

/// Recorded outcome of a call that an earlier approval covers.
pub(crate) const REMEMBERED_OUTCOME: &str = "remembered";

/// Boolean field of the form: true approves the call.
const APPROVE_FIELD: &str = "approve";

/// Maximum number of questions about one call. A client that repeatedly returns no valid answer
/// cannot answer.
const MAX_ROUNDS: u32 = 3;

/// A call that is about to enter a guest, with valid arguments.
pub(crate) struct ApprovalCase<'a> {
    /// The tool.
    pub(crate) offer: &'a Arc<ToolOffer>,
    /// Earlier approvals of its caller.
    pub(crate) remembered: &'a RememberedApprovals,
    /// Scope of an approval that lasts beyond this call; `None` if approvals are not remembered.
    pub(crate) scope: Option<ApprovalScope>,
    /// The kinds of questions that the client supports.
    pub(crate) answerable: QuestionKindSet,
}

/// Next step of a call, and the decision to record.
#[derive(Debug)]
pub(crate) struct ApprovalRuling {
    /// The next step.
    pub(crate) step: ApprovalStep,
    /// The decision to record; `None` if this run requires no approval.
    pub(crate) decision: Option<ApprovalDecision>,
}

/// Next step of a call.
#[derive(Debug)]
pub(crate) enum ApprovalStep {
    /// Enters the guest with this journal.
    Enter(CallJournal),
    /// Asks the user. The next run of the call gets this journal.
    Ask(CallJournal, ApprovalPolicy),
    /// Ends the call.
    End(CallFailure),
}

/// An approval decision to record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ApprovalDecision {
    /// `requested`, `approved`, `remembered`, or the reason for the refusal.
    pub(crate) outcome: &'static str,
    /// Time since the first question about this call; `None` before it.
    pub(crate) waited: Option<Duration>,
    /// The operator who answered in the console, if any.
    pub(crate) operator: Option<String>,
}

/// The user's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UserAnswer {
    Yes,
    No,
    Cancelled,
}

impl<'a> ApprovalCase<'a> {
    /// Creates the case for a call of `target`. Returns `None` unless it is a tool, because only
    /// tools need approval.
    pub(crate) fn for_target(
        target: &'a CallTarget,
        remembered: &'a RememberedApprovals,
        scope: Option<ApprovalScope>,
        answerable: QuestionKindSet,
    ) -> Option<Self> {
        match target {
            CallTarget::Tool(offer) => Some(Self {
                offer,
                remembered,
                scope,
                answerable,
            }),
            CallTarget::Prompt(_) | CallTarget::Resource(_) => None,
        }
    }

    /// Decides the next step of the call from its journal.
    pub(crate) fn decide(&self, mut journal: CallJournal) -> ApprovalRuling {
        // Always removed: if the host did not ask, the client forged this answer.
        let answer = journal.answers.remove(APPROVAL_KEY);
        let operator = journal.operator.take();
        // If only an operator may answer, an answer of the client is none.
        let answer = answer.filter(|_| !self.is_for_operator() || operator.is_some());
        let Some(policy) = self.offer.approval_policy() else {
            // The configuration no longer requires the approval that the last run asked for.
            let journal = if matches!(journal.approval, ApprovalState::Asked(_)) {
                CallJournal::default()
            } else {
                journal
            };
            return ApprovalRuling {
                step: ApprovalStep::Enter(journal),
                decision: None,
            };
        };
        match journal.approval {
            ApprovalState::Given => ApprovalRuling {
                step: ApprovalStep::Enter(journal),
                decision: None,
            },
            ApprovalState::Unasked => self.decide_first_run(journal, policy),
            ApprovalState::Asked(rounds) => {
                let ApprovalRuling { step, decision } =
                    self.decide_answered(&journal, rounds, answer.as_deref(), policy);
                ApprovalRuling {
                    step,
                    decision: decision.map(|decision| ApprovalDecision {
                        operator,
                        ..decision
                    }),
                }
            }
        }
    }

    fn decide_first_run(&self, mut journal: CallJournal, policy: ApprovalPolicy) -> ApprovalRuling {
        if policy == ApprovalPolicy::First
            && self.scope.is_some_and(|scope| {
                self.remembered
                    .is_approved(scope, self.tool(), self.offer.approver())
            })
        {
            journal.approval = ApprovalState::Given;
            return ApprovalRuling::new(ApprovalStep::Enter(journal), REMEMBERED_OUTCOME, None);
        }
        if journal.edition.is_some() {
            // A guest already ran under a configuration without approval. It is too late to ask.
            return ApprovalRuling {
                step: ApprovalStep::End(CallFailure::Outdated),
                decision: None,
            };
        }
        let began = unix_milliseconds();
        let until = began.saturating_add(milliseconds(self.answer_timeout()));
        // Drops answers that the client sent without a question.
        self.ask(
            CallJournal {
                began,
                until,
                ..CallJournal::default()
            },
            0,
            policy,
        )
    }

    fn decide_answered(
        &self,
        journal: &CallJournal,
        rounds: u32,
        answer: Option<&str>,
        policy: ApprovalPolicy,
    ) -> ApprovalRuling {
        let now = unix_milliseconds();
        let waited = Some(Duration::from_millis(now.saturating_sub(journal.began)));
        if now >= journal.until {
            return self.refuse(
                MissingApprovalReason::TimedOut(self.answer_timeout()),
                waited,
            );
        }
        let why = match answer.and_then(parse_answer) {
            Some(UserAnswer::Yes) => {
                if let (ApprovalPolicy::First, Some(scope)) = (policy, self.scope) {
                    self.remembered
                        .remember(scope, self.tool(), self.offer.approver());
                }
                // The deadline and the rounds of the plugin's own questions start now.
                let journal = CallJournal {
                    approval: ApprovalState::Given,
                    ..CallJournal::default()
                };
                return ApprovalRuling::new(ApprovalStep::Enter(journal), "approved", waited);
            }
            Some(UserAnswer::No) => MissingApprovalReason::Declined,
            Some(UserAnswer::Cancelled) => MissingApprovalReason::Cancelled,
            None if self.is_for_operator() => MissingApprovalReason::NoOperator,
            None if rounds >= MAX_ROUNDS => MissingApprovalReason::Invalid(rounds),
            None => {
                let began = journal.began;
                let until = journal.until;
                return self.ask(
                    CallJournal {
                        began,
                        until,
                        ..CallJournal::default()
                    },
                    rounds,
                    policy,
                );
            }
        };
        self.refuse(why, waited)
    }

    /// Asks the user again, or for the first time.
    fn ask(&self, journal: CallJournal, rounds: u32, policy: ApprovalPolicy) -> ApprovalRuling {
        if !self.is_for_operator() && !self.answerable.contains(QuestionKind::Form) {
            return self.refuse(MissingApprovalReason::Unsupported, None);
        }
        let journal = CallJournal {
            approval: ApprovalState::Asked(rounds + 1),
            ..journal
        };
        ApprovalRuling::new(ApprovalStep::Ask(journal, policy), "requested", None)
    }

    fn refuse(&self, why: MissingApprovalReason, waited: Option<Duration>) -> ApprovalRuling {
        let key = format!(
            "tools.{}.require_approval in {}.toml",
            self.tool(),
            self.offer.plugin.id
        );
        let failure = CallFailure::Unapproved(MissingApproval { reason: why, key });
        ApprovalRuling::new(ApprovalStep::End(failure), why.as_str(), waited)
    }

    fn tool(&self) -> &str {
        &self.offer.definition.tool.name
    }

    /// Returns whether only an operator may answer.
    fn is_for_operator(&self) -> bool {
        self.offer.approver() == Approver::Console
    }

    /// Returns the time that the user has to answer.
    fn answer_timeout(&self) -> Duration {
        self.offer
            .plugin
            .tool_context(self.tool())
            .limits
            .ask_timeout
    }
}

impl ApprovalRuling {
    fn new(step: ApprovalStep, outcome: &'static str, waited: Option<Duration>) -> Self {
        Self {
            step,
            decision: Some(ApprovalDecision {
                outcome,
                waited,
                operator: None,
            }),
        }
    }
}

/// Parses a client's answer; `None` if it is invalid.
fn parse_answer(answer: &str) -> Option<UserAnswer> {
    #[derive(Deserialize)]
    struct AnswerFields<'a> {
        action: &'a str,
        #[serde(borrow)]
        content: Option<&'a RawValue>,
    }
    #[derive(Deserialize)]
    struct FormFields {
        approve: bool,
    }
    let AnswerFields { action, content } = serde_json::from_str(answer).ok()?;
    match action {
        "accept" => {
            let FormFields { approve } = serde_json::from_str(content?.get()).ok()?;
            Some(if approve {
                UserAnswer::Yes
            } else {
                UserAnswer::No
            })
        }
        "decline" => Some(UserAnswer::No),
        "cancel" => Some(UserAnswer::Cancelled),
        _ => None,
    }
}

/// Returns the current Unix time, in milliseconds.
fn unix_milliseconds() -> u64 {
    milliseconds(
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default(),
    )
}

/// Returns the text of the host's question; `None` if a plugin asks these questions.
pub(crate) fn question_text(questions: &[Question]) -> Option<String> {
    #[derive(Deserialize)]
    struct FormParams {
        message: String,
    }
    let question = questions
        .iter()
        .find(|question| question.key == APPROVAL_KEY)?;
    let FormParams { message } = serde_json::from_str(question.params.get()).ok()?;
    Some(message)
}

/// Returns an answer that was given outside the client, in the format of the client's answers.
pub(crate) fn answer_json(approved: bool) -> String {
    let action = if approved { "accept" } else { "decline" };
    serde_json::json!({"action": action, "content": {APPROVE_FIELD: approved}}).to_string()
}

#[cfg(test)]
mod tests;
