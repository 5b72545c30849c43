//! Prompts: texts that a user chooses, which become the beginning of a conversation.

use crate::bindings::toolbay::plugin::types;
use crate::{Audio, Content, Context, Error, Icon, Image, Resource, Result};
use serde::Serialize;
use serde_json::{Map, Value};

/// A prompt. `#[prompt]` implements it for an empty type with the name of the function, so that
/// [`test::prompt`](crate::test::prompt) can name the function.
pub trait Prompt {
    /// The name by which clients request the prompt.
    const NAME: &'static str;

    /// Returns the definition of the prompt.
    fn definition() -> PromptDefinition;

    /// Fills in the prompt. The arguments are pairs of a name and a value.
    fn get(arguments: &[(String, String)], context: &Context) -> Result<Messages>;
}

/// The definition of a prompt, which clients list.
#[derive(Clone, Debug, PartialEq)]
pub struct PromptDefinition(pub(crate) types::PromptDefinition);

impl PromptDefinition {
    /// Creates the definition of a prompt without arguments.
    pub fn new(name: &str, description: &str) -> Self {
        Self(types::PromptDefinition {
            name: name.to_owned(),
            title: None,
            description: Some(description.to_owned()),
            arguments: Vec::new(),
            icons: Vec::new(),
            meta: None,
        })
    }

    /// Adds an argument.
    #[must_use]
    pub fn argument(mut self, name: &str, description: Option<&str>, required: bool) -> Self {
        let description = description.map(str::to_owned);
        let argument = types::PromptArgument {
            name: name.to_owned(),
            title: None,
            description,
            required,
        };
        self.0.arguments.push(argument);
        self
    }

    /// Sets a display name.
    #[must_use]
    pub fn title(mut self, title: &str) -> Self {
        self.0.title = Some(title.to_owned());
        self
    }

    /// Adds an icon: a `data:` or `https:` URI, or an [`Icon`] with more details.
    #[must_use]
    pub fn icon(mut self, icon: impl Into<Icon>) -> Self {
        self.0.icons.push(icon.into().0);
        self
    }

    /// Adds a member to the definition's `_meta`. Begin its key with a domain that you own, such as
    /// `example.com/`.
    #[must_use]
    pub fn meta(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        crate::meta::insert_member(&mut self.0.meta, key.into(), value.into());
        self
    }

    /// Returns the name by which clients request the prompt.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Returns the description.
    pub fn description(&self) -> &str {
        self.0.description.as_deref().unwrap_or_default()
    }

    /// Returns the name of each argument, and whether the argument is required.
    pub fn arguments(&self) -> Vec<(&str, bool)> {
        self.0
            .arguments
            .iter()
            .map(|argument| (argument.name.as_str(), argument.required))
            .collect()
    }
}

/// A message of a prompt, with its role and its content.
#[derive(Clone, Debug, PartialEq)]
pub struct Message(pub(crate) types::PromptMessage);

impl Message {
    /// Creates a message of the user.
    pub fn user(content: impl Into<Content>) -> Self {
        Self(types::PromptMessage {
            role: types::Role::User,
            content: content.into().0,
        })
    }

    /// Creates a message of the model.
    pub fn assistant(content: impl Into<Content>) -> Self {
        Self(types::PromptMessage {
            role: types::Role::Assistant,
            content: content.into().0,
        })
    }

    /// Returns whether this is a message of the user.
    pub fn is_of_user(&self) -> bool {
        self.0.role == types::Role::User
    }

    /// Returns the content.
    pub fn content(&self) -> Content {
        Content(self.0.content.clone())
    }
}

/// A prompt with its arguments filled in.
///
/// ```
/// use toolbay_plugin::prelude::*;
///
/// /// Plays a game of questions.
/// #[prompt]
/// fn riddle() -> Messages {
///     Messages::new()
///         .with(Message::user("Ask me a riddle."))
///         .with(Message::assistant("What has keys but no locks?"))
///         .description("A game that has begun")
/// }
/// # export!(riddle);
/// # fn main() {}
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Messages {
    pub(crate) description: Option<String>,
    pub(crate) list: Vec<Message>,
    pub(crate) meta: Option<Map<String, Value>>,
}

impl Messages {
    /// Creates a prompt without messages.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a message.
    #[must_use]
    pub fn with(mut self, message: impl Into<Message>) -> Self {
        self.list.push(message.into());
        self
    }

    /// Sets a description, if the arguments allow a more precise one than in the definition.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// Adds a member to the result's `_meta`. Begin its key with a domain that you own, such as
    /// `example.com/`.
    pub fn meta(mut self, key: impl Into<String>, value: impl Serialize) -> Result<Self> {
        let value = serde_json::to_value(value)?;
        self.meta.get_or_insert_default().insert(key.into(), value);
        Ok(self)
    }

    /// Returns the messages, in order.
    pub fn messages(&self) -> &[Message] {
        &self.list
    }

    /// Returns the text of all messages that have text, joined by line feeds.
    pub fn text(&self) -> String {
        let texts = self
            .list
            .iter()
            .filter_map(|message| message.0.content.text.as_deref());
        texts.collect::<Vec<_>>().join("\n")
    }
}

/// Converts content without a role to a message of the user.
impl<C: Into<Content>> From<C> for Message {
    fn from(content: C) -> Self {
        Self::user(content)
    }
}

/// The types that a function with `#[prompt]` can return.
///
/// | the function returns | the conversation begins with |
/// | --- | --- |
/// | `String`, `&str` | a text of the user |
/// | [`Image`], [`Audio`], [`Resource`], [`Content`] | that block, of the user |
/// | [`Message`], `Vec<Message>` | those messages |
/// | [`Messages`] | the messages that you add |
/// | `Result<A, E>` | `A`, or an error for the user |
#[diagnostic::on_unimplemented(
    message = "a prompt cannot return `{Self}`",
    label = "not something that a conversation can begin with",
    note = "return `String`, `Vec<Message>`, `Messages`, or a `Result` of those"
)]
pub trait IntoMessages {
    /// Converts the value to the form that is passed to the host.
    fn into_messages(self) -> Result<Messages>;
}

impl IntoMessages for Messages {
    fn into_messages(self) -> Result<Messages> {
        Ok(self)
    }
}

impl IntoMessages for Vec<Message> {
    fn into_messages(self) -> Result<Messages> {
        Ok(Messages {
            list: self,
            ..Messages::default()
        })
    }
}

impl<A: IntoMessages, E: Into<Error>> IntoMessages for Result<A, E> {
    fn into_messages(self) -> Result<Messages> {
        self.map_err(Into::into)?.into_messages()
    }
}

macro_rules! one_message {
    ($($type:ty)+) => {
        $(impl IntoMessages for $type {
            fn into_messages(self) -> Result<Messages> {
                Ok(Messages::new().with(self))
            }
        })+
    };
}

one_message!(String &str Content Image Audio Resource Message);

/// A function that fills in a prompt with arguments by name.
type GetPromptFn = fn(&[(String, String)], &Context) -> Result<Messages>;

/// The entry of a prompt in `export!`.
#[derive(Debug)]
pub struct PromptEntry {
    pub(crate) name: &'static str,
    pub(crate) definition: fn() -> PromptDefinition,
    pub(crate) get: GetPromptFn,
}

impl PromptEntry {
    /// Creates the entry of one prompt.
    pub const fn of<T: Prompt>() -> Self {
        Self {
            name: T::NAME,
            definition: T::definition,
            get: T::get,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_is_said_by_the_user() {
        let messages = "hello".into_messages().unwrap();
        assert_eq!(messages.text(), "hello");
        assert!(messages.messages()[0].is_of_user());
        let messages = vec![Message::user("a"), Message::assistant("b")]
            .into_messages()
            .unwrap();
        assert_eq!(messages.text(), "a\nb");
        assert!(!messages.messages()[1].is_of_user());
        assert_eq!(messages.messages()[1].content().as_text(), Some("b"));
    }

    #[test]
    fn an_error_stays_one() {
        let failed: Result<String> = Err(Error::msg("no"));
        assert_eq!(failed.into_messages().unwrap_err().message(), "no");
    }

    #[test]
    fn a_definition_has_the_values_that_were_set() {
        let definition = PromptDefinition::new("a", "Asks a.")
            .title("A")
            .icon("data:,")
            .argument("b", Some("B."), true)
            .argument("c", None, false)
            .meta("example.com/a", 1);
        assert_eq!(
            (definition.name(), definition.description()),
            ("a", "Asks a.")
        );
        assert_eq!(definition.arguments(), [("b", true), ("c", false)]);
        assert_eq!(definition.0.meta.as_deref(), Some(r#"{"example.com/a":1}"#));
    }
}
