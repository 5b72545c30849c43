//! What a guest returned, in a form that is independent of the contract's version. Not checked yet.

use toolbay_model::{Completions, Interview};

use crate::block::Block;

/// What a guest returned for what it was asked.
#[derive(Clone, Debug)]
pub(crate) enum Returned {
    /// The result of a tool.
    Tool(ToolResult),
    /// The result of a tool in parts that have media types.
    Parts(Vec<Part>),
    /// A prompt with its arguments filled in.
    Prompt(FilledPrompt),
    /// What was read of a resource.
    Resource(ReadResource),
    /// Values for an argument.
    Completion(Suggestions),
    /// The guest asks its caller something first.
    Questions(Interview),
}

/// A failure that a guest reports.
#[derive(Clone, Debug)]
pub(crate) enum Refusal {
    /// The arguments make no sense.
    InvalidArguments(String),
    /// The plugin could not do its work.
    Failed(String),
    /// What the plugin answered cannot be read; the text says why.
    Malformed(String),
}

impl Refusal {
    /// What it says.
    pub(crate) fn into_text(self) -> String {
        match self {
            Self::InvalidArguments(text) | Self::Failed(text) | Self::Malformed(text) => text,
        }
    }
}

/// A tool's result.
#[derive(Clone, Debug, Default)]
pub(crate) struct ToolResult {
    /// The content blocks, in reading order.
    pub(crate) content: Vec<Block>,
    /// Structured content, as JSON text.
    pub(crate) structured: Option<String>,
    /// Members for the result's `_meta`: a JSON object as text.
    pub(crate) meta: Option<String>,
}

/// A part of a result.
#[derive(Clone, Debug, Default)]
pub(crate) struct Part {
    pub(crate) data: Vec<u8>,
    /// What `data` is; `None` if nobody says.
    pub(crate) mime_type: Option<String>,
}

/// A prompt with its arguments filled in.
#[derive(Clone, Debug, Default)]
pub(crate) struct FilledPrompt {
    /// What it is for, with these arguments.
    pub(crate) description: Option<String>,
    /// Its messages, in order: who says each, `user` or `assistant`, and what.
    pub(crate) messages: Vec<(&'static str, Block)>,
    /// Members for the result's `_meta`: a JSON object as text.
    pub(crate) meta: Option<String>,
}

/// What was read of a resource.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReadResource {
    /// The URI that was read.
    pub(crate) uri: String,
    /// Nothing if there is no such resource.
    pub(crate) items: Vec<Item>,
}

/// One item of what was read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Item {
    pub(crate) uri: String,
    pub(crate) mime_type: Option<String>,
    pub(crate) text: Option<String>,
    /// Raw bytes, not base64.
    pub(crate) data: Option<Vec<u8>>,
    /// Members for the item's `_meta`: a JSON object as text.
    pub(crate) meta: Option<String>,
}

/// Values that an argument could have.
#[derive(Clone, Debug, Default)]
pub(crate) struct Suggestions {
    /// The values, best first.
    pub(crate) values: Vec<String>,
    /// How many there are in all, if it is known.
    pub(crate) total: Option<u32>,
    /// Whether there are more than `values`.
    pub(crate) has_more: bool,
}

impl Returned {
    /// The bytes that there are to check.
    pub(crate) fn size(&self) -> usize {
        match self {
            Self::Tool(result) => result.size(),
            Self::Parts(parts) => parts.iter().map(|part| part.data.len() + size([&part.mime_type])).sum(),
            Self::Prompt(prompt) => {
                prompt.messages.iter().map(|(_, block)| block.size()).sum::<usize>()
                    + size([&prompt.description, &prompt.meta])
            }
            Self::Resource(read) => read.items.iter().map(Item::size).sum(),
            Self::Completion(suggestions) => suggestions.values.iter().take(Completions::MOST).map(String::len).sum(),
            // They were bounded when they were asked.
            Self::Questions(_) => 0,
        }
    }

    /// How many blocks, messages or items there are.
    pub(crate) fn items(&self) -> usize {
        match self {
            Self::Tool(result) => result.content.len(),
            Self::Parts(parts) => parts.len(),
            Self::Prompt(prompt) => prompt.messages.len(),
            Self::Resource(read) => read.items.len(),
            Self::Completion(suggestions) => suggestions.values.len(),
            Self::Questions(interview) => interview.questions.len(),
        }
    }

    /// The texts in it that are JSON.
    pub(crate) fn json(&self) -> impl Iterator<Item = &String> {
        let (one, other, items) = match self {
            Self::Tool(result) => (&result.structured, &result.meta, [].as_slice()),
            Self::Prompt(prompt) => (&prompt.meta, &None, [].as_slice()),
            Self::Resource(read) => (&None, &None, read.items.as_slice()),
            Self::Parts(_) | Self::Completion(_) | Self::Questions(_) => (&None, &None, [].as_slice()),
        };
        [one, other].into_iter().chain(items.iter().map(|item| &item.meta)).flatten()
    }
}

impl ToolResult {
    /// The bytes that there are to check.
    pub(crate) fn size(&self) -> usize {
        self.content.iter().map(Block::size).sum::<usize>() + size([&self.structured, &self.meta])
    }
}

impl Item {
    fn size(&self) -> usize {
        self.uri.len() + size([&self.mime_type, &self.text, &self.meta]) + self.data.as_ref().map_or(0, Vec::len)
    }
}

fn size<const N: usize>(texts: [&Option<String>; N]) -> usize {
    texts.into_iter().flatten().map(String::len).sum()
}
