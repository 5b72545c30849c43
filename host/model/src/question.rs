//! Questions of a plugin to its caller, and the state that is stored until they are answered.
//!
//! A guest does not run while a person answers. Its call ends, and runs again from the start when
//! the answers have arrived. [`QuestionRound`] has the state that the next run of the call replays.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::{ApprovalState, Digest, JsonText};

/// One question, already checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// Identifies the question within the call.
    pub key: String,
    /// The kind of the question.
    pub kind: QuestionKind,
    /// The parameters of the client's method, an object.
    pub params: JsonText,
}

/// The kinds of questions that a plugin can ask its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum QuestionKind {
    /// A form (`elicitation/create`).
    Form,
    /// A web page to visit (`elicitation/create` with a URL).
    Url,
    /// A text that the client's model generates (`sampling/createMessage`).
    Sampling,
    /// A text that the client's model generates, possibly with tools.
    SamplingWithTools,
    /// The folders that the user works in (`roots/list`).
    Roots,
}

impl QuestionKind {
    /// Every kind.
    pub const ALL: [Self; 5] = [
        Self::Form,
        Self::Url,
        Self::Sampling,
        Self::SamplingWithTools,
        Self::Roots,
    ];

    /// Returns the client's method (MCP, "Elicitation", "Sampling", "Roots").
    pub const fn method(self) -> &'static str {
        match self {
            Self::Form | Self::Url => "elicitation/create",
            Self::Sampling | Self::SamplingWithTools => "sampling/createMessage",
            Self::Roots => "roots/list",
        }
    }

    /// Returns the capabilities that a client must declare to answer questions of these kinds, in
    /// the form of MCP.
    pub fn capabilities(kinds: &[Self]) -> Map<String, Value> {
        let mut capabilities = Map::new();
        for kind in kinds {
            let (name, sub_capability) = match kind {
                Self::Form => ("elicitation", Some("form")),
                Self::Url => ("elicitation", Some("url")),
                Self::Sampling => ("sampling", None),
                Self::SamplingWithTools => ("sampling", Some("tools")),
                Self::Roots => ("roots", None),
            };
            let members = capabilities.entry(name).or_insert_with(|| json!({}));
            if let (Some(sub_capability), Some(members)) = (sub_capability, members.as_object_mut())
            {
                members.insert(sub_capability.to_owned(), json!({}));
            }
        }
        capabilities
    }
}

/// The kinds of questions that a client can answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QuestionKindSet(u8);

impl QuestionKindSet {
    /// Adds a kind to the set.
    #[must_use]
    pub const fn with(self, kind: QuestionKind) -> Self {
        Self(self.0 | 1 << kind as u8)
    }

    /// Returns whether the client can answer this kind.
    pub const fn contains(self, kind: QuestionKind) -> bool {
        self.0 & (1 << kind as u8) != 0
    }
}

/// The state of a call that asks its caller questions: the questions, and the journal that the next
/// run of the call replays.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QuestionRound {
    /// The questions that have no answer yet.
    pub questions: Vec<Question>,
    /// The state that the next run of the call replays.
    pub journal: CallJournal,
}

/// The state that a call replays when it runs again from the start.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct CallJournal {
    /// The answers so far, by the keys of their questions: each is the client's result, a JSON
    /// object as text.
    pub answers: BTreeMap<String, String>,
    /// The effects of the call before it asked its questions, in order.
    pub effects: Vec<RecordedEffect>,
    /// The number of times that the call has asked.
    pub rounds: u32,
    /// Start of the first run, in milliseconds of Unix time; 0 before the call has asked.
    pub began: u64,
    /// Deadline of the last answer, in milliseconds of Unix time; 0 before the call has asked.
    pub until: u64,
    /// Digest of the plugin and the grant with which the call started. The next run requires the
    /// same ones. `None` before the call has asked.
    pub edition: Option<Digest>,
    /// The state of the approval that the operator requires for the call.
    pub approval: ApprovalState,
    /// The operator who gave the last answer in place of the client's user. It is set only by the
    /// server: neither clients nor stored journals contain it.
    #[serde(skip)]
    pub operator: Option<String>,
    /// The call to approve, while the call waits in this process.
    #[serde(skip)]
    pub subject: Option<Box<QuestionSubject>>,
}

/// A call that a person is asked to approve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuestionSubject {
    /// The plugin.
    pub plugin: String,
    /// The tool, by the name that clients use.
    pub tool: String,
    /// SHA-256 of the arguments.
    pub arguments: Digest,
    /// The calls that an approval covers, such as `this call`.
    pub covered_calls: &'static str,
    /// True if only an operator may answer. The question is not sent to the client.
    pub is_for_operator: bool,
}

/// An effect of a call that must not happen again.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct RecordedEffect {
    /// The operation, such as `POST https://api.example.com/issues`. The next run of the call must
    /// repeat the same operations.
    pub what: String,
    /// The result of the operation, in a format that is private to the part of the host that
    /// performed it.
    pub result: Vec<u8>,
}

impl RecordedEffect {
    /// Returns the size in bytes.
    pub fn size(&self) -> usize {
        self.what.len() + self.result.len()
    }
}

impl CallJournal {
    /// Returns the size in bytes.
    pub fn size(&self) -> usize {
        let answers = self
            .answers
            .iter()
            .map(|(key, answer)| key.len() + answer.len());
        let effects = self.effects.iter().map(RecordedEffect::size);
        answers.chain(effects).sum()
    }

    /// Returns whether only an operator may answer the open question.
    pub fn is_for_operator(&self) -> bool {
        self.subject
            .as_ref()
            .is_some_and(|subject| subject.is_for_operator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn required_capabilities_have_the_form_of_mcp() {
        let kinds = [QuestionKind::Form, QuestionKind::Url, QuestionKind::Roots];
        let expected = json!({"elicitation": {"form": {}, "url": {}}, "roots": {}});
        assert_eq!(Value::Object(QuestionKind::capabilities(&kinds)), expected);
        let tools = QuestionKind::capabilities(&[QuestionKind::SamplingWithTools]);
        assert_eq!(Value::Object(tools), json!({"sampling": {"tools": {}}}));
    }

    #[test]
    fn set_contains_the_declared_kinds() {
        let some = QuestionKindSet::default()
            .with(QuestionKind::Form)
            .with(QuestionKind::Roots);
        let kinds = QuestionKind::ALL
            .into_iter()
            .filter(|kind| some.contains(*kind));
        assert_eq!(
            kinds.collect::<Vec<_>>(),
            [QuestionKind::Form, QuestionKind::Roots]
        );
    }
}
