//! Prompts: texts that a user selects, which become the beginning of a conversation.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::icon::DEFINITION_OVERHEAD_BYTES;
use crate::{ContentBlock, Icon, JsonText};

/// One prompt as the plugin defines it, not yet checked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct PromptDefinition {
    /// The prompt's name without the operator's prefix.
    pub name: String,
    /// A display name.
    pub title: Option<String>,
    /// The purpose of the prompt.
    pub description: Option<String>,
    /// Its arguments, in the plugin's order.
    pub arguments: Vec<PromptArgument>,
    /// Icons that a client can display.
    pub icons: Vec<Icon>,
    /// Members for `_meta`: a JSON object as text.
    pub meta: Option<String>,
}

/// An argument of a prompt (MCP `PromptArgument`). Its value is a string.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize, Serialize)]
pub struct PromptArgument {
    /// Its name.
    pub name: String,
    /// A display name.
    pub title: Option<String>,
    /// The meaning of the argument.
    pub description: Option<String>,
    /// True if the prompt requires the argument.
    pub required: bool,
}

/// A prompt as clients receive it: checked, named, and ready to be listed in any revision of MCP.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Prompt {
    /// The name that clients use: the prefix of the grant, if there is one, and the plugin's own
    /// name for the prompt.
    pub name: String,
    /// A display name.
    pub title: Option<String>,
    /// The purpose of the prompt.
    pub description: Option<String>,
    /// Its arguments, in the plugin's order.
    pub arguments: Arc<[PromptArgument]>,
    /// Icons that a client can display.
    pub icons: Arc<[Icon]>,
    /// The definition's `_meta`, an object; `None` if it has no members.
    pub meta: Option<JsonText>,
}

/// A prompt with its arguments filled in, checked and sanitized.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PromptOutput {
    /// The purpose of the prompt with these arguments.
    pub description: Option<String>,
    /// Its messages, in order.
    pub messages: Vec<PromptMessage>,
    /// Additional members for the result's `_meta`.
    pub meta: Map<String, Value>,
}

/// A message of a prompt.
#[derive(Clone, Debug, PartialEq)]
pub struct PromptMessage {
    /// The role of the speaker: `user` or `assistant`.
    pub role: &'static str,
    /// The content of the message.
    pub content: ContentBlock,
}

impl PromptDefinition {
    /// Returns the size in bytes. Each part has an overhead, even if it is empty.
    pub fn size(&self) -> usize {
        let texts = [&self.title, &self.description, &self.meta]
            .into_iter()
            .flatten()
            .chain([&self.name]);
        let arguments: usize = self.arguments.iter().map(PromptArgument::size).sum();
        DEFINITION_OVERHEAD_BYTES
            + texts.map(String::len).sum::<usize>()
            + arguments
            + self.icons.iter().map(Icon::size).sum::<usize>()
    }
}

impl PromptArgument {
    /// Returns the size in bytes. Each part has an overhead, even if it is empty.
    pub fn size(&self) -> usize {
        let texts = [&self.title, &self.description]
            .into_iter()
            .flatten()
            .chain([&self.name]);
        DEFINITION_OVERHEAD_BYTES + texts.map(String::len).sum::<usize>()
    }
}

impl Prompt {
    /// Returns the size of the prompt in a list of prompts, in bytes, without the JSON syntax.
    pub fn size(&self) -> usize {
        let texts = [
            Some(&self.name),
            self.title.as_ref(),
            self.description.as_ref(),
        ];
        texts.into_iter().flatten().map(String::len).sum::<usize>()
            + self
                .arguments
                .iter()
                .map(PromptArgument::size)
                .sum::<usize>()
            + self.meta.as_ref().map_or(0, |meta| meta.get().len())
            + self.icons.iter().map(Icon::size).sum::<usize>()
    }
}
