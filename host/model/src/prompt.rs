//! Prompts: texts that a user chooses, which become the beginning of a conversation.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::icon::ENTRY;
use crate::{ContentBlock, Icon, JsonText};

/// One prompt as the plugin defines it, not yet checked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct PromptDefinition {
    /// The prompt's name without the operator's prefix.
    pub name: String,
    /// A display name.
    pub title: Option<String>,
    /// What the prompt is for.
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
    /// What it means.
    pub description: Option<String>,
    /// Whether the prompt needs it.
    pub required: bool,
}

/// A prompt as clients see it: checked, named, and ready to be listed in any revision of MCP.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Prompt {
    /// The name by which clients get it: the prefix of the grant, if there is one, and the plugin's own name.
    pub name: String,
    /// A display name.
    pub title: Option<String>,
    /// What the prompt is for.
    pub description: Option<String>,
    /// Its arguments, in the plugin's order.
    pub arguments: Arc<[PromptArgument]>,
    /// Icons that a client can display.
    pub icons: Arc<[Icon]>,
    /// The definition's `_meta`, an object; `None` if it has no members.
    pub meta: Option<JsonText>,
}

/// A prompt with its arguments filled in, already checked and cleaned.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PromptOutput {
    /// What it is for, with these arguments.
    pub description: Option<String>,
    /// Its messages, in order.
    pub messages: Vec<PromptMessage>,
    /// Additional members for the result's `_meta`.
    pub meta: Map<String, Value>,
}

/// A message of a prompt.
#[derive(Clone, Debug, PartialEq)]
pub struct PromptMessage {
    /// Who says it: `user` or `assistant`.
    pub role: &'static str,
    /// What it contains.
    pub content: ContentBlock,
}

impl PromptDefinition {
    /// The bytes of everything in it. What is empty takes some, too.
    pub fn size(&self) -> usize {
        let texts = [&self.title, &self.description, &self.meta].into_iter().flatten().chain([&self.name]);
        let arguments: usize = self.arguments.iter().map(PromptArgument::size).sum();
        ENTRY + texts.map(String::len).sum::<usize>() + arguments + self.icons.iter().map(Icon::size).sum::<usize>()
    }
}

impl PromptArgument {
    /// The bytes of everything in it. What is empty takes some, too.
    pub fn size(&self) -> usize {
        let texts = [&self.title, &self.description].into_iter().flatten().chain([&self.name]);
        ENTRY + texts.map(String::len).sum::<usize>()
    }
}

impl Prompt {
    /// The bytes of everything in it that a list of prompts contains, without the JSON between them.
    pub fn size(&self) -> usize {
        let texts = [Some(&self.name), self.title.as_ref(), self.description.as_ref()];
        texts.into_iter().flatten().map(String::len).sum::<usize>()
            + self.arguments.iter().map(PromptArgument::size).sum::<usize>()
            + self.meta.as_ref().map_or(0, |meta| meta.get().len())
            + self.icons.iter().map(Icon::size).sum::<usize>()
    }
}
