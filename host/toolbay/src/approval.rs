//! A person's yes before a call, where the operator wants one (`approve` in a grant).
//!
//! The host itself asks, after it has checked the arguments and before a guest is entered, in the way in which the questions
//! of a guest reach the user. Whether somebody was asked, and what came of it, is in the call's journal. Only the host writes
//! that: a client has it sealed, and bound to the arguments, the caller and the edition of the plugin. So an answer counts
//! only where the host has asked for it, and a guest never sees one.

mod excerpt;
mod opens;
mod question;
mod remembered;
mod visible;
mod waiting;

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::Deserialize;
use serde_json::value::RawValue;
use toolbay_catalog::{ApprovalPolicy, ToolOffer};
use toolbay_model::{
    ApprovalState, CallFailure, CallJournal, MissingApproval, Question, QuestionKind, QuestionKindSet, WhyUnapproved,
    milliseconds,
};

pub(crate) use self::question::{ApprovalValidity, question};
pub(crate) use self::remembered::{ApprovalScope, RememberedApprovals};
pub(crate) use self::waiting::{ApprovalSubject, WaitingApprovals};
use crate::target::CallTarget;

/// The key of the host's question. No plugin can have one with a slash (`toolbay_sandbox`).
pub(crate) const KEY: &str = "dev.toolbay/approve";

/// What is recorded of a call that was allowed before.
pub(crate) const REMEMBERED: &str = "remembered";

/// The field of the form that says yes or no.
const FIELD: &str = "approve";

/// How often the user is asked about one call: a client that returns no answer that is one does not know how.
const ROUNDS: u32 = 3;

/// A call that is about to enter a guest, and whose arguments are valid.
pub(crate) struct ApprovalCase<'a> {
    /// The tool.
    pub(crate) offer: &'a Arc<ToolOffer>,
    /// What its caller allowed before.
    pub(crate) remembered: &'a RememberedApprovals,
    /// For whom a yes counts beyond this call; `None` if for nobody.
    pub(crate) scope: Option<ApprovalScope>,
    /// What the client can ask.
    pub(crate) answerable: QuestionKindSet,
}

/// What becomes of a call.
#[derive(Debug)]
pub(crate) struct ApprovalRuling {
    /// What to do.
    pub(crate) step: ApprovalStep,
    /// What there is to record; `None` if nobody was to be asked.
    pub(crate) decision: Option<ApprovalDecision>,
}

/// What to do with a call.
#[derive(Debug)]
pub(crate) enum ApprovalStep {
    /// The guest can be entered, with this journal.
    Enter(CallJournal),
    /// The user is asked, and the next run of the call gets this journal.
    Ask(CallJournal, ApprovalPolicy),
    /// The call ends.
    End(CallFailure),
}

/// What there is to record of an approval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ApprovalDecision {
    /// `asked`, `approved`, `remembered`, or why there is none.
    pub(crate) word: &'static str,
    /// Time since the user was first asked about this call; `None` before.
    pub(crate) waited: Option<Duration>,
    /// Who answered in the console; `None` if nobody did.
    pub(crate) by: Option<String>,
}

/// What the user said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UserAnswer {
    Yes,
    No,
    Nothing,
}

impl<'a> ApprovalCase<'a> {
    /// The case of a call of this target; `None` if it is no tool: nobody is asked about others.
    pub(crate) fn of(
        target: &'a CallTarget,
        remembered: &'a RememberedApprovals,
        scope: Option<ApprovalScope>,
        answerable: QuestionKindSet,
    ) -> Option<Self> {
        match target {
            CallTarget::Tool(offer) => Some(Self { offer, remembered, scope, answerable }),
            CallTarget::Prompt(_) | CallTarget::Resource(_) => None,
        }
    }

    /// What becomes of the call with this journal.
    pub(crate) fn rule(&self, mut journal: CallJournal) -> ApprovalRuling {
        // Without having asked, this is something that the client made up.
        let answer = journal.answers.remove(KEY);
        let by = journal.operator.take();
        let Some(asks) = self.offer.asks() else {
            // Its last run was to be approved: the configuration was another one.
            let journal =
                if matches!(journal.approval, ApprovalState::Asked(_)) { CallJournal::default() } else { journal };
            return ApprovalRuling { step: ApprovalStep::Enter(journal), decision: None };
        };
        match journal.approval {
            ApprovalState::Given => ApprovalRuling { step: ApprovalStep::Enter(journal), decision: None },
            ApprovalState::Unasked => self.first_run(journal, asks),
            ApprovalState::Asked(rounds) => {
                let ApprovalRuling { step, decision } = self.answered(&journal, rounds, answer.as_deref(), asks);
                ApprovalRuling { step, decision: decision.map(|decision| ApprovalDecision { by, ..decision }) }
            }
        }
    }

    fn first_run(&self, mut journal: CallJournal, asks: ApprovalPolicy) -> ApprovalRuling {
        if asks == ApprovalPolicy::First && self.scope.is_some_and(|scope| self.remembered.counts(scope, self.tool())) {
            journal.approval = ApprovalState::Given;
            return ApprovalRuling::of(ApprovalStep::Enter(journal), REMEMBERED, None);
        }
        if journal.edition.is_some() {
            // A guest has run already, when the configuration was another one: nobody can allow that now.
            return ApprovalRuling { step: ApprovalStep::End(CallFailure::Outdated), decision: None };
        }
        let began = now();
        let until = began.saturating_add(milliseconds(self.time()));
        // What a client answers without having been asked is not kept.
        self.ask(CallJournal { began, until, ..CallJournal::default() }, 0, asks)
    }

    fn answered(
        &self,
        journal: &CallJournal,
        rounds: u32,
        answer: Option<&str>,
        asks: ApprovalPolicy,
    ) -> ApprovalRuling {
        let now = now();
        let waited = Some(Duration::from_millis(now.saturating_sub(journal.began)));
        if now >= journal.until {
            return self.refused(WhyUnapproved::Late(self.time()), waited);
        }
        let why = match answer.and_then(said) {
            Some(UserAnswer::Yes) => {
                if let (ApprovalPolicy::First, Some(scope)) = (asks, self.scope) {
                    self.remembered.note(scope, self.tool());
                }
                // The clock and the rounds of the plugin's own questions begin now.
                let journal = CallJournal { approval: ApprovalState::Given, ..CallJournal::default() };
                return ApprovalRuling::of(ApprovalStep::Enter(journal), "approved", waited);
            }
            Some(UserAnswer::No) => WhyUnapproved::Declined,
            Some(UserAnswer::Nothing) => WhyUnapproved::Cancelled,
            None if rounds >= ROUNDS => WhyUnapproved::Unanswered(rounds),
            None => {
                let (began, until) = (journal.began, journal.until);
                return self.ask(CallJournal { began, until, ..CallJournal::default() }, rounds, asks);
            }
        };
        self.refused(why, waited)
    }

    /// Has the user asked for the next time.
    fn ask(&self, journal: CallJournal, rounds: u32, asks: ApprovalPolicy) -> ApprovalRuling {
        if !self.answerable.contains(QuestionKind::Form) {
            return self.refused(WhyUnapproved::Impossible, None);
        }
        let journal = CallJournal { approval: ApprovalState::Asked(rounds + 1), ..journal };
        ApprovalRuling::of(ApprovalStep::Ask(journal, asks), "asked", None)
    }

    fn refused(&self, why: WhyUnapproved, waited: Option<Duration>) -> ApprovalRuling {
        let key = format!("tools.{}.approve in {}.toml", self.tool(), self.offer.plugin.id);
        let failure = CallFailure::Unapproved(MissingApproval { why, key });
        ApprovalRuling::of(ApprovalStep::End(failure), why.as_str(), waited)
    }

    fn tool(&self) -> &str {
        &self.offer.definition.tool.name
    }

    /// How long the user has for the answer.
    fn time(&self) -> Duration {
        self.offer.plugin.environment(self.tool()).limits.ask_time
    }
}

impl ApprovalRuling {
    fn of(step: ApprovalStep, word: &'static str, waited: Option<Duration>) -> Self {
        Self { step, decision: Some(ApprovalDecision { word, waited, by: None }) }
    }
}

/// What a client's answer says; `None` if it is none.
fn said(answer: &str) -> Option<UserAnswer> {
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
            Some(if approve { UserAnswer::Yes } else { UserAnswer::No })
        }
        "decline" => Some(UserAnswer::No),
        "cancel" => Some(UserAnswer::Nothing),
        _ => None,
    }
}

/// Milliseconds of Unix time.
fn now() -> u64 {
    milliseconds(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
}

/// What the host asks with these questions; `None` if it is a plugin that asks them.
pub(crate) fn text(questions: &[Question]) -> Option<String> {
    #[derive(Deserialize)]
    struct FormParams {
        message: String,
    }
    let question = questions.iter().find(|question| question.key == KEY)?;
    let FormParams { message } = serde_json::from_str(question.params.get()).ok()?;
    Some(message)
}

/// The answer of somebody who was asked by other means than a client.
pub(crate) fn answer(yes: bool) -> String {
    let action = if yes { "accept" } else { "decline" };
    serde_json::json!({"action": action, "content": {FIELD: yes}}).to_string()
}

#[cfg(test)]
mod tests;
