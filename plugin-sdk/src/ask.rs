//! Questions to the caller: forms, pages to visit, requests to the client's model, and the user's
//! directories.

use std::fmt::{self, Display, Formatter};
use std::marker::PhantomData;

use crate::bindings::toolbay::plugin::types;
use crate::{Content, Error, JsonSchema, Result, schema};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// A question that [`Context::ask`](crate::Context::ask) can ask.
pub trait Question {
    /// The type of the answer.
    type Answer;

    /// Converts the question to the form of the contract.
    #[doc(hidden)]
    fn question(&self) -> ContractQuestion;

    /// Parses the client's result.
    #[doc(hidden)]
    fn answer(&self, result: Value) -> Result<Self::Answer>;
}

/// A question in the form of the contract.
#[doc(hidden)]
#[derive(Clone, Debug, PartialEq)]
pub struct ContractQuestion {
    pub(crate) kind: types::QuestionKind,
    pub(crate) params: Value,
    pub(crate) required: bool,
}

/// A form for the user to fill in.
///
/// `T` derives `Deserialize` and [`JsonSchema`](derive@JsonSchema). It is a struct of strings,
/// numbers, booleans, enums of names, and lists of such enums. Do not ask for secrets: the client
/// does not hide the values of a form.
///
/// ```
/// use serde::Deserialize;
/// use toolbay_plugin::prelude::*;
/// use toolbay_plugin::serde_json::json;
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Confirmation {
///     /// Really delete it?
///     yes: bool,
/// }
///
/// /// Deletes everything.
/// #[tool(destructive)]
/// fn delete_all(ctx: &Context) -> Result<&'static str> {
///     match ctx.ask("sure", Form::<Confirmation>::new("This deletes everything."))? {
///         Elicited::Accepted(Confirmation { yes: true }) => Ok("deleted"),
///         _ => Ok("nothing was deleted"),
///     }
/// }
///
/// let ctx = Context::test().with_answer("sure", json!({"action": "accept", "content": {"yes": true}}));
/// assert_eq!(delete_all(&ctx).unwrap(), "deleted");
/// ```
#[derive(Clone, Debug)]
pub struct Form<T> {
    message: String,
    required: bool,
    fields: PhantomData<fn() -> T>,
}

/// The user's response to a [`Form`] or a [`Visit`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Elicited<T> {
    /// The user accepted. For a [`Form`], this is its content.
    Accepted(T),
    /// The user declined.
    Declined,
    /// The user closed the question without a decision.
    Cancelled,
}

impl<T: DeserializeOwned + JsonSchema> Form<T> {
    /// Creates a form with the fields of `T`, and a message that explains its purpose.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            required: true,
            fields: PhantomData,
        }
    }

    /// Makes the question optional. If the client does not support this kind of question,
    /// [`Context::ask`](crate::Context::ask) fails with [`AskError::Unsupported`] instead of ending
    /// the call.
    #[must_use]
    pub fn optional(mut self) -> Self {
        self.required = false;
        self
    }
}

impl<T: DeserializeOwned + JsonSchema> Question for Form<T> {
    type Answer = Elicited<T>;

    fn question(&self) -> ContractQuestion {
        let params = json!({"message": self.message, "requestedSchema": schema::of_form::<T>()});
        ContractQuestion {
            kind: types::QuestionKind::Form,
            params,
            required: self.required,
        }
    }

    fn answer(&self, result: Value) -> Result<Elicited<T>> {
        Ok(match ElicitResult::deserialize(&result)? {
            ElicitResult {
                action: ElicitAction::Accept,
                content,
            } => Elicited::Accepted(T::deserialize(content)?),
            ElicitResult {
                action: ElicitAction::Decline,
                ..
            } => Elicited::Declined,
            ElicitResult {
                action: ElicitAction::Cancel,
                ..
            } => Elicited::Cancelled,
        })
    }
}

#[derive(Deserialize)]
struct ElicitResult {
    action: ElicitAction,
    #[serde(default)]
    content: Value,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum ElicitAction {
    Accept,
    Decline,
    Cancel,
}

/// A page for the user to visit, such as one to sign in or to pay.
///
/// The answer states whether the user agreed to open the page, not what happened there. To get the
/// outcome, query the service behind the page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Visit {
    message: String,
    url: String,
    required: bool,
}

impl Visit {
    /// Creates a question for the page at `url`, which must begin with `https://`, and a message
    /// that explains its purpose.
    pub fn new(message: impl Into<String>, url: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            url: url.into(),
            required: true,
        }
    }

    /// Makes the question optional, like [`Form::optional`].
    #[must_use]
    pub fn optional(mut self) -> Self {
        self.required = false;
        self
    }
}

impl Question for Visit {
    type Answer = Elicited<()>;

    fn question(&self) -> ContractQuestion {
        let params = json!({"message": self.message, "url": self.url});
        ContractQuestion {
            kind: types::QuestionKind::Url,
            params,
            required: self.required,
        }
    }

    fn answer(&self, result: Value) -> Result<Elicited<()>> {
        Ok(match ElicitResult::deserialize(&result)?.action {
            ElicitAction::Accept => Elicited::Accepted(()),
            ElicitAction::Decline => Elicited::Declined,
            ElicitAction::Cancel => Elicited::Cancelled,
        })
    }
}

/// A request to the client's model to generate text.
///
/// ```
/// use toolbay_plugin::prelude::*;
/// use toolbay_plugin::serde_json::json;
///
/// /// Writes a poem.
/// #[tool(read_only)]
/// fn poem(ctx: &Context) -> Result<String> {
///     let written = ctx.ask("poem", Sampling::new(200).user("Write a haiku about rain."))?;
///     Ok(written.text())
/// }
///
/// let answer = json!({"role": "assistant", "model": "m", "content": {"type": "text", "text": "Drip."}});
/// let ctx = Context::test().with_answer("poem", answer);
/// assert_eq!(poem(&ctx).unwrap(), "Drip.");
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Sampling {
    params: Value,
    required: bool,
}

impl Sampling {
    /// Creates a request for a text of at most `max_tokens` tokens.
    pub fn new(max_tokens: u32) -> Self {
        Self {
            params: json!({"messages": [], "maxTokens": max_tokens}),
            required: true,
        }
    }

    /// Adds a user message.
    #[must_use]
    pub fn user(self, text: impl Into<String>) -> Self {
        self.message("user", text.into())
    }

    /// Adds an assistant message.
    #[must_use]
    pub fn assistant(self, text: impl Into<String>) -> Self {
        self.message("assistant", text.into())
    }

    fn message(mut self, role: &str, text: String) -> Self {
        if let Some(messages) = self
            .params
            .get_mut("messages")
            .and_then(Value::as_array_mut)
        {
            let text = Value::String(text);
            messages.push(json!({"role": role, "content": {"type": "text", "text": text}}));
        }
        self
    }

    /// Sets the system prompt.
    #[must_use]
    pub fn system(self, prompt: impl Into<String>) -> Self {
        self.with("systemPrompt", prompt.into())
    }

    /// Sets any other parameter of MCP's `sampling/createMessage`, such as `temperature`,
    /// `modelPreferences` or `tools`.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        if let Some(params) = self.params.as_object_mut() {
            params.insert(key.to_owned(), value.into());
        }
        self
    }

    /// Makes the question optional, like [`Form::optional`].
    #[must_use]
    pub fn optional(mut self) -> Self {
        self.required = false;
        self
    }
}

impl Question for Sampling {
    type Answer = Sampled;

    fn question(&self) -> ContractQuestion {
        ContractQuestion {
            kind: types::QuestionKind::Sampling,
            params: self.params.clone(),
            required: self.required,
        }
    }

    fn answer(&self, result: Value) -> Result<Sampled> {
        Ok(Sampled(result))
    }
}

/// The result of a [`Sampling`] request.
#[derive(Clone, Debug, PartialEq)]
pub struct Sampled(Value);

impl Sampled {
    /// Returns the text that the model generated. Several blocks are joined by line feeds.
    pub fn text(&self) -> String {
        let blocks = match self.0.get("content") {
            Some(Value::Array(blocks)) => blocks.as_slice(),
            Some(block) => std::slice::from_ref(block),
            None => &[],
        };
        let texts: Vec<&str> = blocks
            .iter()
            .filter_map(|block| block.get("text")?.as_str())
            .collect();
        texts.join("\n")
    }

    /// Returns the name of the model.
    pub fn model(&self) -> Option<&str> {
        self.0.get("model")?.as_str()
    }

    /// Returns the reason why the model stopped, such as `endTurn` or `maxTokens`.
    pub fn stop_reason(&self) -> Option<&str> {
        self.0.get("stopReason")?.as_str()
    }

    /// Returns the whole result, as in MCP.
    pub fn value(&self) -> &Value {
        &self.0
    }
}

/// Converts the generated text to a text block.
impl From<Sampled> for Content {
    fn from(sampled: Sampled) -> Self {
        Self::text(sampled.text())
    }
}

/// A request for the directories that the user works in. The answer is only a hint: the operator
/// decides which directories a plugin can open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Roots {
    optional: bool,
}

impl Roots {
    /// Creates a request for the directories that the user works in.
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes the question optional, like [`Form::optional`].
    #[must_use]
    pub fn optional(mut self) -> Self {
        self.optional = true;
        self
    }
}

/// A directory that the user works in.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Root {
    /// The URI, which begins with `file://`.
    pub uri: String,
    /// A display name.
    pub name: Option<String>,
}

impl Question for Roots {
    type Answer = Vec<Root>;

    fn question(&self) -> ContractQuestion {
        ContractQuestion {
            kind: types::QuestionKind::Roots,
            params: json!({}),
            required: !self.optional,
        }
    }

    fn answer(&self, result: Value) -> Result<Vec<Root>> {
        #[derive(Deserialize)]
        struct ListRootsResult {
            roots: Vec<Root>,
        }
        Ok(ListRootsResult::deserialize(result)?.roots)
    }
}

/// The reason why a question has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AskError {
    /// The client cannot answer this kind of question.
    Unsupported(String),
    /// The question cannot be asked. The text describes the mistake in the question, or in the
    /// plugin's actions before it.
    Invalid(String),
}

impl Display for AskError {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsupported(why) | Self::Invalid(why) => formatter.write_str(why),
        }
    }
}

impl std::error::Error for AskError {}

impl From<types::AskError> for AskError {
    fn from(error: types::AskError) -> Self {
        match error {
            types::AskError::Unsupported(why) => Self::Unsupported(why),
            types::AskError::Invalid(why) => Self::Invalid(why),
        }
    }
}

/// Several questions that are asked together: a tuple of pairs of a key and a question.
pub trait Questions {
    /// The tuple of the answers.
    type Answers;

    /// Converts the questions to the form of the contract, each with its key.
    #[doc(hidden)]
    fn questions(&self) -> Vec<(&str, ContractQuestion)>;

    /// Parses the client's results.
    #[doc(hidden)]
    fn answers(&self, results: Vec<Value>) -> Result<Self::Answers>;
}

macro_rules! questions {
    ($($name:ident $index:tt),+) => {
        impl<$($name: Question),+> Questions for ($((&str, $name),)+) {
            type Answers = ($($name::Answer,)+);

            fn questions(&self) -> Vec<(&str, ContractQuestion)> {
                vec![$((self.$index.0, self.$index.1.question())),+]
            }

            fn answers(&self, results: Vec<Value>) -> Result<Self::Answers> {
                let mut results = results.into_iter();
                Ok(($(
                    self.$index.1.answer(
                        results.next().ok_or_else(|| Error::msg("the host returned too few answers"))?
                    )?,
                )+))
            }
        }
    };
}

questions!(A 0);
questions!(A 0, B 1);
questions!(A 0, B 1, C 2);
questions!(A 0, B 1, C 2, D 3);
questions!(A 0, B 1, C 2, D 3, E 4);
questions!(A 0, B 1, C 2, D 3, E 4, F 5);

#[cfg(test)]
mod tests;
