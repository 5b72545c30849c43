//! Guest replies, independent of the contract's version. They are not checked yet.

use toolbay_model::{CompletionResult, QuestionRound};

use crate::reply::block::RawBlock;

/// The reply of a guest to a request.
#[derive(Clone, Debug)]
pub(crate) enum GuestReply {
    /// The result of a tool.
    Tool(ToolResult),
    /// The result of a tool, in parts with media types.
    Parts(Vec<ResultPart>),
    /// A prompt with its arguments filled in.
    Prompt(FilledPrompt),
    /// The contents of a resource.
    Resource(ReadResource),
    /// Values for an argument.
    Completion(ArgumentSuggestions),
    /// Questions that the caller must answer first.
    Questions(QuestionRound),
}

/// A failure that a guest reports.
#[derive(Clone, Debug)]
pub(crate) enum GuestFailure {
    /// The arguments are not valid.
    InvalidArguments(String),
    /// The plugin could not complete the request.
    Failed(String),
    /// The reply of the plugin cannot be parsed. The text is the reason.
    Malformed(String),
}

impl GuestFailure {
    /// Returns the message.
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
    pub(crate) content: Vec<RawBlock>,
    /// Structured content, as JSON text.
    pub(crate) structured: Option<String>,
    /// Members for the result's `_meta`: a JSON object as text.
    pub(crate) meta: Option<String>,
}

/// A part of a result.
#[derive(Clone, Debug, Default)]
pub(crate) struct ResultPart {
    pub(crate) data: Vec<u8>,
    /// The media type of `data`, or `None` if it is unknown.
    pub(crate) mime_type: Option<String>,
}

/// A prompt with its arguments filled in.
#[derive(Clone, Debug, Default)]
pub(crate) struct FilledPrompt {
    /// The description of the prompt, with these arguments.
    pub(crate) description: Option<String>,
    /// The messages in order, each with its role, `user` or `assistant`.
    pub(crate) messages: Vec<(&'static str, RawBlock)>,
    /// Members for the result's `_meta`: a JSON object as text.
    pub(crate) meta: Option<String>,
}

/// The contents of a resource.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReadResource {
    /// The requested URI.
    pub(crate) uri: String,
    /// The items of the resource. Empty if the resource does not exist.
    pub(crate) items: Vec<ResourceReplyItem>,
}

/// An item of a resource.
#[derive(Clone, Debug, Default)]
pub(crate) struct ResourceReplyItem {
    pub(crate) uri: String,
    pub(crate) mime_type: Option<String>,
    pub(crate) text: Option<String>,
    /// Raw bytes, not base64.
    pub(crate) data: Option<Vec<u8>>,
    /// Members for the item's `_meta`: a JSON object as text.
    pub(crate) meta: Option<String>,
}

/// The suggested values for an argument.
#[derive(Clone, Debug, Default)]
pub(crate) struct ArgumentSuggestions {
    /// The values, best first.
    pub(crate) values: Vec<String>,
    /// The total number of values, if it is known.
    pub(crate) total: Option<u32>,
    /// True if there are more values than `values`.
    pub(crate) has_more: bool,
}

impl GuestReply {
    /// Returns the number of bytes to check.
    pub(crate) fn size(&self) -> usize {
        match self {
            Self::Tool(result) => result.size(),
            Self::Parts(parts) => parts
                .iter()
                .map(|part| part.data.len() + size([&part.mime_type]))
                .sum(),
            Self::Prompt(prompt) => {
                prompt
                    .messages
                    .iter()
                    .map(|(_, block)| block.size())
                    .sum::<usize>()
                    + size([&prompt.description, &prompt.meta])
            }
            Self::Resource(read) => read.items.iter().map(ResourceReplyItem::size).sum(),
            Self::Completion(suggestions) => suggestions
                .values
                .iter()
                .take(CompletionResult::MAX_VALUES)
                .map(String::len)
                .sum(),
            // Questions were checked when the guest asked them.
            Self::Questions(_) => 0,
        }
    }

    /// Returns the number of blocks, messages or items.
    pub(crate) fn item_count(&self) -> usize {
        match self {
            Self::Tool(result) => result.content.len(),
            Self::Parts(parts) => parts.len(),
            Self::Prompt(prompt) => prompt.messages.len(),
            Self::Resource(read) => read.items.len(),
            Self::Completion(suggestions) => suggestions.values.len(),
            Self::Questions(interview) => interview.questions.len(),
        }
    }

    /// Returns its JSON texts.
    pub(crate) fn json_texts(&self) -> impl Iterator<Item = &String> {
        let (one, other, items) = match self {
            Self::Tool(result) => (&result.structured, &result.meta, [].as_slice()),
            Self::Prompt(prompt) => (&prompt.meta, &None, [].as_slice()),
            Self::Resource(read) => (&None, &None, read.items.as_slice()),
            Self::Parts(_) | Self::Completion(_) | Self::Questions(_) => {
                (&None, &None, [].as_slice())
            }
        };
        [one, other]
            .into_iter()
            .chain(items.iter().map(|item| &item.meta))
            .flatten()
    }
}

impl ToolResult {
    /// Returns the number of bytes to check.
    pub(crate) fn size(&self) -> usize {
        self.content.iter().map(RawBlock::size).sum::<usize>()
            + size([&self.structured, &self.meta])
    }
}

impl ResourceReplyItem {
    fn size(&self) -> usize {
        self.uri.len()
            + size([&self.mime_type, &self.text, &self.meta])
            + self.data.as_ref().map_or(0, Vec::len)
    }
}

fn size<const N: usize>(texts: [&Option<String>; N]) -> usize {
    texts.into_iter().flatten().map(String::len).sum()
}
