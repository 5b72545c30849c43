//! Questions of a plugin to its caller, and what is remembered until they are answered.
//!
//! A guest does not live while a person thinks: its call ends, and begins anew when the answers are there. What it must
//! find as it was is in the [`QuestionRound`].

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::{ApprovalState, Digest, JsonText};

/// One question, already checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// Identifies it within the call.
    pub key: String,
    /// What is asked.
    pub kind: QuestionKind,
    /// The parameters of the client's method, an object.
    pub params: JsonText,
}

/// What a plugin can ask of its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum QuestionKind {
    /// A form (`elicitation/create`).
    Form,
    /// A page to visit (`elicitation/create` with a URL).
    Url,
    /// A text of the client's model (`sampling/createMessage`).
    Sampling,
    /// A text of the client's model, which may use tools.
    SamplingWithTools,
    /// The folders that the user works in (`roots/list`).
    Roots,
}

impl QuestionKind {
    /// Every kind.
    pub const ALL: [Self; 5] = [Self::Form, Self::Url, Self::Sampling, Self::SamplingWithTools, Self::Roots];

    /// The client's method (MCP, "Elicitation", "Sampling", "Roots").
    pub const fn method(self) -> &'static str {
        match self {
            Self::Form | Self::Url => "elicitation/create",
            Self::Sampling | Self::SamplingWithTools => "sampling/createMessage",
            Self::Roots => "roots/list",
        }
    }

    /// The capabilities that a client must declare to answer questions of these kinds, in MCP's form.
    pub fn capabilities(kinds: &[Self]) -> Map<String, Value> {
        let mut capabilities = Map::new();
        for kind in kinds {
            let (name, part) = match kind {
                Self::Form => ("elicitation", Some("form")),
                Self::Url => ("elicitation", Some("url")),
                Self::Sampling => ("sampling", None),
                Self::SamplingWithTools => ("sampling", Some("tools")),
                Self::Roots => ("roots", None),
            };
            let members = capabilities.entry(name).or_insert_with(|| json!({}));
            if let (Some(part), Some(members)) = (part, members.as_object_mut()) {
                members.insert(part.to_owned(), json!({}));
            }
        }
        capabilities
    }
}

/// The kinds of questions that a client can answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QuestionKindSet(u8);

impl QuestionKindSet {
    /// The same and this kind.
    #[must_use]
    pub const fn with(self, kind: QuestionKind) -> Self {
        Self(self.0 | 1 << kind as u8)
    }

    /// Whether the client can answer this kind.
    pub const fn contains(self, kind: QuestionKind) -> bool {
        self.0 & (1 << kind as u8) != 0
    }
}

/// What is remembered of a call that asks its caller something: its questions, and what it must find as it was when it
/// begins anew.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QuestionRound {
    /// The questions that have no answer yet.
    pub questions: Vec<Question>,
    /// What the next run of the call must find as it was.
    pub journal: CallJournal,
}

/// What a call must find as it was when it begins anew.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct CallJournal {
    /// The answers so far, by the keys of their questions: each is the client's result, a JSON object as text.
    pub answers: BTreeMap<String, String>,
    /// What the call did before it asked, in order.
    pub effects: Vec<RecordedEffect>,
    /// How many times the call has asked.
    pub rounds: u32,
    /// When the call first began, in milliseconds of Unix time; 0 before it has asked.
    pub began: u64,
    /// When the last answer must be there, in milliseconds of Unix time; 0 before it has asked.
    pub until: u64,
    /// The plugin and the grant with which the call began: the next run needs the same. `None` before it has asked.
    pub edition: Option<Digest>,
    /// How far the call is with the approval that the operator wants for it.
    pub approval: ApprovalState,
    /// Who gave the last answer in the place of the client's user. Neither a client nor what is kept for one says that.
    #[serde(skip)]
    pub operator: Option<String>,
    /// What a person is asked about, as long as the call waits in this process.
    #[serde(skip)]
    pub asked_about: Option<Box<AskedAbout>>,
}

/// The call that a person is asked about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AskedAbout {
    /// The plugin.
    pub plugin: String,
    /// The tool, as clients call it.
    pub tool: String,
    /// SHA-256 of the arguments.
    pub arguments: Digest,
}

/// Something that a call did that must not happen again.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct RecordedEffect {
    /// What was done, such as `POST https://api.example.com/issues`: the call must do the same again.
    pub what: String,
    /// What came of it, in a form that only the part of the host that did it knows.
    pub result: Vec<u8>,
}

impl RecordedEffect {
    /// The bytes of everything in it.
    pub fn size(&self) -> usize {
        self.what.len() + self.result.len()
    }
}

impl CallJournal {
    /// The bytes of everything in it.
    pub fn size(&self) -> usize {
        let answers = self.answers.iter().map(|(key, answer)| key.len() + answer.len());
        let effects = self.effects.iter().map(RecordedEffect::size);
        answers.chain(effects).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_client_lacks_is_told_in_the_words_of_the_protocol() {
        let kinds = [QuestionKind::Form, QuestionKind::Url, QuestionKind::Roots];
        let expected = json!({"elicitation": {"form": {}, "url": {}}, "roots": {}});
        assert_eq!(Value::Object(QuestionKind::capabilities(&kinds)), expected);
        let tools = QuestionKind::capabilities(&[QuestionKind::SamplingWithTools]);
        assert_eq!(Value::Object(tools), json!({"sampling": {"tools": {}}}));
    }

    #[test]
    fn a_client_answers_the_kinds_that_it_declared() {
        let some = QuestionKindSet::default().with(QuestionKind::Form).with(QuestionKind::Roots);
        let kinds = QuestionKind::ALL.into_iter().filter(|kind| some.contains(*kind));
        assert_eq!(kinds.collect::<Vec<_>>(), [QuestionKind::Form, QuestionKind::Roots]);
    }
}
