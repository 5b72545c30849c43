//! Questions of a guest to its caller. A guest does not stay alive while it waits for answers. Its
//! call ends with the questions, and runs again from the start when the answers are available.

mod answer_check;
mod form;
mod page_url;
mod question_check;
mod raw_question;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Map, Value};
use toolbay_model::text::clean;
use toolbay_model::{
    CallError, CallJournal, JsonText, Limit, Limits, Question, QuestionKind, QuestionKindSet,
    QuestionRound, milliseconds,
};
use toolbay_secrets::SecretFilter;

use self::answer_check::check_answer;
use self::question_check::check_questions;
pub(crate) use self::raw_question::{QuestionRefusal, RawQuestion, RawQuestionKind};
use crate::capability::effects::SideEffects;

/// The state of one call that is needed to ask questions.
pub(crate) struct QuestionContext {
    answerable: QuestionKindSet,
    journal: Arc<CallJournal>,
    effects: SideEffects,
    secrets: Arc<SecretFilter>,
    max_rounds: u64,
    timeout: Duration,
    max_journal_bytes: usize,
}

/// Error that ends the call with questions to the caller.
#[derive(Clone, Debug)]
pub(crate) struct SuspendedCall(pub(crate) QuestionRound);

/// Error that ends the call because the client does not support these kinds of questions.
#[derive(Clone, Debug)]
pub(crate) struct MissingCapability(Vec<QuestionKind>);

impl QuestionContext {
    pub(crate) fn new(
        answerable: QuestionKindSet,
        journal: Arc<CallJournal>,
        effects: SideEffects,
        secrets: Arc<SecretFilter>,
        limits: &Limits,
    ) -> Self {
        let max_rounds = limits.ask_rounds;
        let timeout = limits.ask_timeout;
        let max_journal_bytes = usize::try_from(limits.journal.as_u64()).unwrap_or(usize::MAX);
        Self {
            answerable,
            journal,
            effects,
            secrets,
            max_rounds,
            timeout,
            max_journal_bytes,
        }
    }

    /// Returns the answers to these questions, in order. Each answer is the client's result as JSON
    /// text.
    ///
    /// # Errors
    ///
    /// Ends the call: [`SuspendedCall`] if an answer is missing, [`MissingCapability`] if the
    /// client cannot answer a required question, [`Limit`] if the call has asked too often or for
    /// too long. The inner error is for the guest.
    pub(crate) fn ask(
        &self,
        raw_questions: &[RawQuestion],
    ) -> wasmtime::Result<Result<Vec<String>, QuestionRefusal>> {
        let questions = match check_questions(raw_questions, &self.secrets) {
            Ok(questions) => questions,
            Err(why) => return Ok(Err(QuestionRefusal::Invalid(why))),
        };
        let mut answers = Vec::new();
        let mut unanswered = Vec::new();
        for (question, raw) in questions.into_iter().zip(raw_questions) {
            match self
                .journal
                .answers
                .get(&question.key)
                .map(|answer| check_answer(&question, answer))
            {
                Some(Ok(answer)) => answers.push(answer),
                Some(Err(why)) => {
                    unanswered.push((self.with_rejection(question, &why), raw.is_required));
                }
                None => unanswered.push((question, raw.is_required)),
            }
        }
        if unanswered.is_empty() {
            return Ok(Ok(answers));
        }
        let unsupported_kinds = |required| {
            let unsupported = unanswered.iter().filter(move |(question, is_required)| {
                !self.answerable.contains(question.kind) && *is_required == required
            });
            unsupported
                .map(|(question, _)| question.kind)
                .collect::<BTreeSet<_>>()
                .into_iter()
                .collect::<Vec<_>>()
        };
        let missing_kinds = unsupported_kinds(true);
        if !missing_kinds.is_empty() {
            return Err(MissingCapability(missing_kinds).into());
        }
        if let Some(kind) = unsupported_kinds(false).first() {
            return Ok(Err(QuestionRefusal::Unsupported(format!(
                "the client does not support {}",
                kind.method()
            ))));
        }
        let answers = self.journal.answers.clone();
        self.suspend(
            unanswered
                .into_iter()
                .map(|(question, _)| question)
                .collect(),
            answers,
        )
    }

    /// Returns a question whose answer was rejected, with the reason in its message.
    fn with_rejection(&self, question: Question, why: &str) -> Question {
        let mut params: Value = serde_json::from_str(question.params.get()).unwrap_or_default();
        let Some(Value::String(message)) = params.get_mut("message") else {
            return question;
        };
        message.push_str("\n\nThe last answer is invalid: ");
        message.push_str(&self.secrets.scrub(&clean(why)));
        Question {
            params: JsonText::new(&params),
            ..question
        }
    }

    /// Returns the journal of earlier runs of the call.
    pub(crate) fn journal(&self) -> Arc<CallJournal> {
        Arc::clone(&self.journal)
    }

    /// Returns the client capabilities that correspond to the supported kinds of questions.
    pub(crate) fn capabilities(&self) -> Map<String, Value> {
        let kinds = QuestionKind::ALL
            .into_iter()
            .filter(|kind| self.answerable.contains(*kind));
        QuestionKind::capabilities(&kinds.collect::<Vec<_>>())
    }

    /// Asks questions for a plugin that is an MCP server. Such a plugin receives the answers of one
    /// round at a time, with `state`. Returns the reason if the questions cannot be asked.
    ///
    /// # Errors
    ///
    /// Ends the call, as [`QuestionContext::ask`] does.
    pub(crate) fn ask_with_state(
        &self,
        raw_questions: &[RawQuestion],
        state: BTreeMap<String, String>,
    ) -> wasmtime::Result<String> {
        let questions = match check_questions(raw_questions, &self.secrets) {
            Ok(questions) => questions,
            Err(why) => return Ok(why),
        };
        let lacking = questions
            .iter()
            .map(|question| question.kind)
            .filter(|kind| !self.answerable.contains(*kind));
        let lacking: BTreeSet<_> = lacking.collect();
        if !lacking.is_empty() {
            return Err(MissingCapability(lacking.into_iter().collect()).into());
        }
        Ok(match self.suspend(questions, state)? {
            Err(QuestionRefusal::Invalid(why) | QuestionRefusal::Unsupported(why)) => why,
            Ok(_) => String::new(),
        })
    }

    /// Ends the call with these questions. `answers` are the answers that were already received.
    fn suspend(
        &self,
        questions: Vec<Question>,
        answers: BTreeMap<String, String>,
    ) -> wasmtime::Result<Result<Vec<String>, QuestionRefusal>> {
        let effects = match self.effects.to_journal() {
            Ok(effects) => effects,
            Err(why) => return Ok(Err(QuestionRefusal::Invalid(why))),
        };
        if u64::from(self.journal.rounds) >= self.max_rounds {
            return Err(Limit::AskRounds(self.max_rounds).into());
        }
        let now = milliseconds(
            SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .unwrap_or_default(),
        );
        let began = if self.journal.began == 0 {
            now
        } else {
            self.journal.began
        };
        if now.saturating_sub(began) > milliseconds(self.timeout) {
            return Err(Limit::AskTime(self.timeout).into());
        }
        let edition = self.journal.edition;
        // The approval of the call remains valid.
        let approval = self.journal.approval;
        let until = began.saturating_add(milliseconds(self.timeout));
        let journal = CallJournal {
            answers,
            effects,
            rounds: self.journal.rounds + 1,
            began,
            until,
            edition,
            approval,
            ..CallJournal::default()
        };
        if journal.size() > self.max_journal_bytes {
            let why = "the answers so far and the operations before this question are \
                       too large to store (limits.journal): ask for less";
            return Ok(Err(QuestionRefusal::Invalid(why.to_owned())));
        }
        Err(SuspendedCall(QuestionRound { questions, journal }).into())
    }
}

impl MissingCapability {
    /// Creates the error for the kinds that the client lacks.
    pub(crate) fn new(kinds: Vec<QuestionKind>) -> Self {
        Self(kinds)
    }

    pub(crate) fn to_call_error(&self) -> CallError {
        CallError::Incapable(self.0.clone())
    }
}

impl fmt::Display for SuspendedCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the call asks its caller a question")
    }
}

impl std::error::Error for SuspendedCall {}

impl fmt::Display for MissingCapability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the client cannot answer the question")
    }
}

impl std::error::Error for MissingCapability {}

#[cfg(test)]
mod tests;
