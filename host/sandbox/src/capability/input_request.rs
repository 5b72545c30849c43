//! Questions of a guest to its caller. A guest does not stay alive while it waits for answers. Its
//! call ends with the questions, and runs again from the start when the answers are available.

mod form;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Map, Value};
use toolbay_model::text::{clean, clean_line};
use toolbay_model::{
    CallError, CallJournal, JsonSize, JsonText, Limit, Limits, Question, QuestionKind,
    QuestionKindSet, QuestionRound, is_reserved_meta,
};
use toolbay_secrets::SecretFilter;
use url::{Host, Url};

use crate::capability::effects::SideEffects;

/// Maximum number of questions in one request.
const MAX_QUESTIONS: usize = 16;

/// Maximum size of a question's key, in bytes.
const MAX_KEY_BYTES: usize = 64;

/// Maximum size of a question's parameters, in bytes.
const MAX_PARAMS_BYTES: usize = 64 << 10;

/// Maximum number of JSON values in the parameters of a question.
const MAX_PARAM_VALUES: u64 = 4_000;

/// The member of the parameters that requests a task instead of an answer (MCP 2025-11-25).
const TASK_MEMBER: &str = "task";

/// The member to which clients and servers can attach metadata.
const META_MEMBER: &str = "_meta";

/// Maximum size of a quotation in a message about a question, in bytes.
const MAX_QUOTED_BYTES: usize = 100;

/// A question as the contract represents it, not yet checked.
#[derive(Clone, Debug)]
pub(crate) struct RawQuestion {
    pub(crate) key: String,
    pub(crate) kind: PosedKind,
    /// The parameters, a JSON object as text.
    pub(crate) params: String,
    /// True if the call cannot continue without an answer.
    pub(crate) required: bool,
}

/// The kind of a question, as the contract represents it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PosedKind {
    Form,
    Url,
    Sampling,
    Roots,
}

/// The reason why questions have no answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum QuestionRefusal {
    /// The client does not support this kind.
    Unsupported(String),
    /// The questions are invalid.
    Invalid(String),
}

/// The state of one call that is needed to ask questions.
pub(crate) struct QuestionContext {
    answerable: QuestionKindSet,
    journal: Arc<CallJournal>,
    effects: SideEffects,
    secrets: Arc<SecretFilter>,
    rounds: u64,
    time: Duration,
    size: usize,
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
        let (rounds, time) = (limits.ask_rounds, limits.ask_timeout);
        let size = usize::try_from(limits.journal.as_u64()).unwrap_or(usize::MAX);
        Self {
            answerable,
            journal,
            effects,
            secrets,
            rounds,
            time,
            size,
        }
    }

    /// Returns the answers to these questions, in order. Each answer is the client's result as JSON
    /// text.
    ///
    /// # Errors
    ///
    /// Ends the call: [`SuspendedCall`] if an answer is missing, [`MissingCapability`] if the
    /// client cannot answer what must be answered, [`Limit`] if the call has asked too often or for
    /// too long. The inner error is for the guest.
    pub(crate) fn ask(
        &self,
        posed: &[RawQuestion],
    ) -> wasmtime::Result<Result<Vec<String>, QuestionRefusal>> {
        let questions = match self.check_questions(posed) {
            Ok(questions) => questions,
            Err(why) => return Ok(Err(QuestionRefusal::Invalid(why))),
        };
        let (mut answers, mut open) = (Vec::new(), Vec::new());
        for (question, posed) in questions.into_iter().zip(posed) {
            match self
                .journal
                .answers
                .get(&question.key)
                .map(|answer| check_answer(&question, answer))
            {
                Some(Ok(answer)) => answers.push(answer),
                Some(Err(why)) => open.push((self.with_rejection(question, &why), posed.required)),
                None => open.push((question, posed.required)),
            }
        }
        if open.is_empty() {
            return Ok(Ok(answers));
        }
        let lacking = |required| {
            let lacking = open.iter().filter(move |(question, needed)| {
                !self.answerable.contains(question.kind) && *needed == required
            });
            lacking
                .map(|(question, _)| question.kind)
                .collect::<BTreeSet<_>>()
                .into_iter()
                .collect::<Vec<_>>()
        };
        let needed = lacking(true);
        if !needed.is_empty() {
            return Err(MissingCapability(needed).into());
        }
        if let Some(kind) = lacking(false).first() {
            return Ok(Err(QuestionRefusal::Unsupported(format!(
                "the client does not support {}",
                kind.method()
            ))));
        }
        let answers = self.journal.answers.clone();
        self.suspend(
            open.into_iter().map(|(question, _)| question).collect(),
            answers,
        )
    }

    /// Returns a question whose answer was rejected, with the reason in its message.
    fn with_rejection(&self, question: Question, why: &str) -> Question {
        let mut params: Value = serde_json::from_str(question.params.get()).unwrap_or_default();
        let Some(Value::String(message)) = params.get_mut("message") else {
            return question;
        };
        message.push_str("\n\nThe last answer does not fit: ");
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
        posed: &[RawQuestion],
        state: BTreeMap<String, String>,
    ) -> wasmtime::Result<String> {
        let questions = match self.check_questions(posed) {
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
        if u64::from(self.journal.rounds) >= self.rounds {
            return Err(Limit::AskRounds(self.rounds).into());
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
        if now.saturating_sub(began) > milliseconds(self.time) {
            return Err(Limit::AskTime(self.time).into());
        }
        let edition = self.journal.edition;
        // The approval of the call remains valid.
        let approval = self.journal.approval;
        let until = began.saturating_add(milliseconds(self.time));
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
        if journal.size() > self.size {
            let why = "the answers so far and the operations before this question are \
                       too large to store (limits.journal): ask for less";
            return Ok(Err(QuestionRefusal::Invalid(why.to_owned())));
        }
        Err(SuspendedCall(QuestionRound { questions, journal }).into())
    }

    /// Checks the questions.
    ///
    /// # Errors
    ///
    /// The problem with a question, worded for the plugin's author.
    fn check_questions(&self, posed: &[RawQuestion]) -> Result<Vec<Question>, String> {
        if posed.len() > MAX_QUESTIONS {
            return Err(format!(
                "at most {MAX_QUESTIONS} questions can be asked at once, not {}",
                posed.len()
            ));
        }
        let mut keys = BTreeSet::new();
        posed
            .iter()
            .map(|posed| {
                let key = &posed.key;
                let named = |why: String| {
                    format!("question {:?}: {why}", clean_line(key, MAX_QUOTED_BYTES))
                };
                if !is_key(key) {
                    return Err(named(format!(
                        "a key has 1 to {MAX_KEY_BYTES} characters of A-Z a-z 0-9 _ - ."
                    )));
                }
                if !keys.insert(key) {
                    return Err(named("another question has the same key".to_owned()));
                }
                self.check_question(posed).map_err(named)
            })
            .collect()
    }

    fn check_question(&self, posed: &RawQuestion) -> Result<Question, String> {
        if posed.params.len() > MAX_PARAMS_BYTES
            || JsonSize::measure(&posed.params).values > MAX_PARAM_VALUES
        {
            return Err(format!(
                "its parameters are larger than {} KiB or {MAX_PARAM_VALUES} values",
                MAX_PARAMS_BYTES >> 10
            ));
        }
        let Ok(mut params @ Value::Object(_)) = serde_json::from_str(&posed.params) else {
            return Err("its parameters are not a JSON object".to_owned());
        };
        self.clean_value(&mut params);
        if let Some(params) = params.as_object_mut() {
            // Task support is negotiated between the client and the server.
            params.shift_remove(TASK_MEMBER);
        }
        let kind = match posed.kind {
            PosedKind::Form => form::check(&params).map(|()| QuestionKind::Form)?,
            PosedKind::Url => check_url(&params).map(|()| QuestionKind::Url)?,
            PosedKind::Sampling => check_sampling(&params)?,
            PosedKind::Roots => QuestionKind::Roots,
        };
        Ok(Question {
            key: posed.key.clone(),
            kind,
            params: JsonText::new(&params),
        })
    }

    /// Removes control characters and secrets from every text, and reserved keys from every
    /// `_meta`.
    fn clean_value(&self, value: &mut Value) {
        let text = |text: &str| self.secrets.scrub(&clean(text)).into_owned();
        match value {
            Value::String(words) => *words = text(words),
            Value::Array(items) => items.iter_mut().for_each(|item| self.clean_value(item)),
            Value::Object(members) => {
                *members = std::mem::take(members)
                    .into_iter()
                    .map(|(name, mut member)| {
                        self.clean_value(&mut member);
                        let name = text(&name);
                        if name == META_MEMBER
                            && let Some(meta) = member.as_object_mut()
                        {
                            meta.retain(|key, _| !is_reserved_meta(key));
                        }
                        (name, member)
                    })
                    .collect();
            }
            _ => {}
        }
    }
}

/// Returns the answer if it is valid for this question. Otherwise, the question is asked again with
/// the reason.
fn check_answer(question: &Question, answer: &str) -> Result<String, String> {
    let Ok(answer @ Value::Object(_)) = serde_json::from_str(answer) else {
        return Err("it is not a JSON object".to_owned());
    };
    let answer = match question.kind {
        QuestionKind::Form => form::check_answer(&question.params, answer)?,
        QuestionKind::Url if form::action(&answer).is_none() => {
            return Err("it has no `action` that is accept, decline or cancel".to_owned());
        }
        QuestionKind::Sampling | QuestionKind::SamplingWithTools
            if answer.get("content").is_none() =>
        {
            return Err("it has no `content`".to_owned());
        }
        QuestionKind::Roots if !answer.get("roots").is_some_and(Value::is_array) => {
            return Err("it has no list of `roots`".to_owned());
        }
        _ => answer,
    };
    Ok(clean_answer(answer).to_string())
}

/// Removes control characters from a client's result.
fn clean_answer(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(clean(&text).into_owned()),
        Value::Array(items) => items.into_iter().map(clean_answer).collect(),
        Value::Object(members) => members
            .into_iter()
            .map(|(name, member)| (clean(&name).into_owned(), clean_answer(member)))
            .collect(),
        value => value,
    }
}

fn is_key(key: &str) -> bool {
    key.len() <= MAX_KEY_BYTES && toolbay_model::is_name(key)
}

/// Checks that the page uses TLS or is on the client's machine. The host that a browser finds in
/// the URL must be the host that a person reads. URLs that browsers and people can read differently
/// are rejected.
fn check_url(params: &Value) -> Result<(), String> {
    if !params.get("message").is_some_and(Value::is_string) {
        return Err("`message` must state the purpose of the page".to_owned());
    }
    let written = params
        .get("url")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let shown = || clean_line(written, MAX_QUOTED_BYTES);
    // Browsers remove tabs and line ends from a URL, and read a backslash as a slash.
    if let Some(c) = written
        .chars()
        .find(|c| c.is_whitespace() || c.is_control() || *c == '\\')
    {
        return Err(format!(
            "`url` must not contain {c:?}; write it in percent-encoding, not as in {:?}",
            shown()
        ));
    }
    let url = Url::parse(written)
        .map_err(|error| format!("`url` is not a URL ({error}): {:?}", shown()))?;
    let local = match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address == Ipv4Addr::LOCALHOST,
        Some(Host::Ipv6(address)) => address == Ipv6Addr::LOCALHOST,
        None => false,
    };
    if !(url.scheme() == "https" || (url.scheme() == "http" && local)) {
        let what =
            "`url` must begin with https://, or with http://localhost or a loopback address, not";
        return Err(format!("{what} {:?}", shown()));
    }
    // Browsers also find a host in `https:a.example` and `https:///a.example`.
    let authority = written
        .split_once("://")
        .map(|(_, rest)| rest.split(['/', '?', '#']).next().unwrap_or_default());
    let authority = authority.filter(|authority| !authority.is_empty());
    let Some(authority) = authority else {
        return Err(format!(
            "`url` must name a host after `{}://`, not {:?}",
            url.scheme(),
            shown()
        ));
    };
    // This includes an empty user: the text before the `@` looks like the host.
    if authority.contains('@') {
        return Err(format!(
            "`url` must not have user information (the part before `@`), as in {:?}",
            shown()
        ));
    }
    if authority.contains('%') {
        return Err(format!(
            "`url` must not have percent-encoding in its host, as in {:?}",
            shown()
        ));
    }
    Ok(())
}

fn check_sampling(params: &Value) -> Result<QuestionKind, String> {
    let messages = params.get("messages").and_then(Value::as_array);
    let is_message = |message: &Value| {
        let role = message.get("role").and_then(Value::as_str);
        matches!(role, Some("user" | "assistant")) && message.get("content").is_some()
    };
    if !messages.is_some_and(|messages| !messages.is_empty() && messages.iter().all(is_message)) {
        return Err(
            "`messages` must be a list of messages, each with a role (user or assistant) and content".to_owned()
        );
    }
    if params
        .get("maxTokens")
        .and_then(Value::as_u64)
        .is_none_or(|most| most == 0)
    {
        return Err("`maxTokens` must be a whole number above 0".to_owned());
    }
    match params.get("tools") {
        None => Ok(QuestionKind::Sampling),
        Some(Value::Array(_)) => Ok(QuestionKind::SamplingWithTools),
        Some(_) => Err("`tools` must be a list".to_owned()),
    }
}

fn milliseconds(time: Duration) -> u64 {
    toolbay_model::milliseconds(time)
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
        f.write_str("the call asks its caller something")
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
