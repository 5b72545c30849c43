//! A prompt in a text file: one user message, with placeholders such as `{{argument}}` for values.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytesize::ByteSize;
use serde_json::Map;
use toolbay_model::text::{clean, clean_line};
use toolbay_model::{
    CallError, ContentBlock, ContentBody, Limit, PromptArgument, PromptDefinition, PromptMessage,
    PromptOutput, is_name,
};

use crate::definition::prompt_entry::PromptEntry;
use crate::plain::front_matter::FrontMatter;

/// Maximum length of an argument name, in bytes.
const MAX_ARGUMENT_NAME_BYTES: usize = 128;

/// The white space that may surround a name.
const NAME_WHITESPACE: [char; 2] = [' ', '\t'];

/// Maximum number of names in a remark.
const MAX_SHOWN_NAMES: usize = 5;

/// Maximum length of a name in a remark, in bytes.
const MAX_SHOWN_NAME_BYTES: usize = 64;

/// A prompt in a text file.
#[derive(Clone, Debug)]
pub struct TextPrompt {
    /// The definition of the prompt.
    pub entry: Arc<PromptEntry>,
    /// The parts of the message.
    segments: Box<[PromptSegment]>,
    /// The size of everything retained from the file, in bytes.
    size: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum PromptSegment {
    Text(Box<str>),
    /// The value of the argument with this name.
    Value(Box<str>),
}

/// Two prompts are equal if they are the same for clients.
impl PartialEq for TextPrompt {
    fn eq(&self, other: &Self) -> bool {
        self.entry.prompt == other.entry.prompt && self.segments == other.segments
    }
}

impl TextPrompt {
    /// Parses the file of the prompt `name`. Also returns warnings.
    ///
    /// # Errors
    ///
    /// Returns a message that describes the problem. It begins with the line number and a colon if
    /// it concerns one line.
    pub(crate) fn parse(name: &str, text: &str) -> Result<(Self, Vec<String>), String> {
        let (front_matter, body) =
            FrontMatter::parse(text).map_err(|(line, why)| format!("{line}: {why}"))?;
        let mut remarks: Vec<String> = front_matter.unknown_keys_remark().into_iter().collect();
        let clean_field = |text: String| clean(text.trim()).into_owned();
        let arguments = front_matter
            .arguments
            .into_iter()
            .flatten()
            .map(|argument| PromptArgument {
                name: argument.name,
                title: argument.title.map(clean_field),
                description: argument.description.map(clean_field),
                required: argument.required.unwrap_or_default(),
            });
        let definition = PromptDefinition {
            name: name.to_owned(),
            title: front_matter.title.map(clean_field),
            description: front_matter.description.map(clean_field),
            arguments: arguments.collect(),
            icons: Vec::new(),
            meta: None,
        };
        let size = definition.size() + body.len();
        let entry = PromptEntry::new(definition).map_err(|why| format!(" {why}"))?;
        let body = clean(body.trim());
        if body.is_empty() {
            return Err(" it has no text after the front matter".to_owned());
        }
        let is_argument = |name: &str| {
            entry
                .prompt
                .arguments
                .iter()
                .any(|argument| argument.name == name)
        };
        let (segments, unknown) = split_placeholders(&body, is_argument);
        if !unknown.is_empty() {
            let shown_names: Vec<String> = unknown
                .iter()
                .take(MAX_SHOWN_NAMES)
                .map(|name| format!("{{{{{}}}}}", clean_line(name, MAX_SHOWN_NAME_BYTES)))
                .collect();
            let more = unknown.len().saturating_sub(MAX_SHOWN_NAMES);
            let more = if more > 0 {
                format!(" and {more} more")
            } else {
                String::new()
            };
            remarks.push(format!(
                "{}{more} in its text is not one of its arguments, and stays as it is",
                shown_names.join(", ")
            ));
        }
        let is_used = |name: &str| {
            segments
                .iter()
                .any(|segment| matches!(segment, PromptSegment::Value(used) if &**used == name))
        };
        let arguments = entry
            .prompt
            .arguments
            .iter()
            .map(|argument| argument.name.as_str());
        let unused: Vec<String> = arguments
            .filter(|name| !is_used(name))
            .map(|name| clean_line(name, MAX_SHOWN_NAME_BYTES))
            .collect();
        if !unused.is_empty() {
            let more = unused.len().saturating_sub(MAX_SHOWN_NAMES);
            let more = if more > 0 {
                format!(" and {more} more")
            } else {
                String::new()
            };
            let shown_names = unused
                .into_iter()
                .take(MAX_SHOWN_NAMES)
                .collect::<Vec<_>>()
                .join(", ");
            remarks.push(format!(
                "its text has no place for the argument {shown_names}{more}; write {{{{NAME}}}} where it goes"
            ));
        }
        Ok((
            Self {
                entry: Arc::new(entry),
                segments: segments.into(),
                size,
            },
            remarks,
        ))
    }

    /// Returns the text of the message, with the arguments in their places as in the file.
    pub(crate) fn template_text(&self) -> String {
        let parts = self.segments.iter().map(|segment| match segment {
            PromptSegment::Text(text) => text.to_string(),
            PromptSegment::Value(name) => format!("{{{{{name}}}}}"),
        });
        parts.collect()
    }

    /// Renders the prompt with these arguments, in at most `max_size` (`limits.output`). Unknown
    /// arguments are ignored, and missing ones are empty: see [`PromptEntry::violations`].
    ///
    /// # Errors
    ///
    /// Returns an error if the result would be larger.
    pub fn render(
        &self,
        arguments: &BTreeMap<String, String>,
        max_size: ByteSize,
    ) -> Result<PromptOutput, CallError> {
        let texts = || {
            self.segments.iter().map(|segment| match segment {
                PromptSegment::Text(text) => &**text,
                PromptSegment::Value(name) => arguments.get(&**name).map_or("", String::as_str),
            })
        };
        // A value can occur in many places, so the length is computed before anything is copied.
        if texts().map(str::len).fold(0, usize::saturating_add) as u64 > max_size.as_u64() {
            return Err(CallError::Limit {
                limit: Limit::Output(max_size),
                tool: None,
            });
        }
        // Each value is cleaned separately: a control sequence that starts in a value must not end
        // in the text after it.
        let text: String = texts().map(clean).collect();
        let body = ContentBody::Text(text);
        let content = ContentBlock {
            body,
            audience: Vec::new(),
            priority: None,
            last_modified: None,
        };
        let messages = vec![PromptMessage {
            role: "user",
            content,
        }];
        Ok(PromptOutput {
            description: self.entry.prompt.description.clone(),
            messages,
            meta: Map::new(),
        })
    }

    /// Returns the size of everything retained from the file, in bytes.
    pub(crate) fn size(&self) -> usize {
        self.size
    }
}

/// Splits a text at its `{{argument}}` placeholders. Also returns the names in such braces that are
/// not arguments. Scans the text once, from left to right.
fn split_placeholders(
    text: &str,
    is_argument: impl Fn(&str) -> bool,
) -> (Vec<PromptSegment>, BTreeSet<String>) {
    let mut segments = Vec::new();
    let mut unknown = BTreeSet::new();
    let mut closing = ClosingBraces::default();
    // Start of the text that is not in a segment yet, and position from which to search for the
    // next braces.
    let mut text_start = 0;
    let mut search_start = 0;
    while let Some(opening) = text
        .get(search_start..)
        .and_then(|rest| rest.find("{{"))
        .map(|at| search_start + at)
    {
        let placeholder = closing
            .name_from(text, opening + 2)
            .filter(|(name, _)| name.len() <= MAX_ARGUMENT_NAME_BYTES && is_name(name));
        match placeholder {
            Some((name, after)) if is_argument(name) => {
                if let Some(text) = text
                    .get(text_start..opening)
                    .filter(|text| !text.is_empty())
                {
                    segments.push(PromptSegment::Text(text.into()));
                }
                segments.push(PromptSegment::Value(name.into()));
                (text_start, search_start) = (after, after);
            }
            placeholder => {
                unknown.extend(placeholder.map(|(name, _)| name.to_owned()));
                // The second brace may start another pair.
                search_start = opening + 1;
            }
        }
    }
    if let Some(text) = text.get(text_start..).filter(|text| !text.is_empty()) {
        segments.push(PromptSegment::Text(text.into()));
    }
    (segments, unknown)
}

/// The next `}}`. It is searched for once, however many braces open before it.
#[derive(Default)]
struct ClosingBraces {
    /// Its position; `None` before the first search.
    position: Option<usize>,
    /// End of the text before it, without trailing white space.
    text_end: usize,
    /// True if there are no more.
    is_exhausted: bool,
}

impl ClosingBraces {
    /// Returns the name in braces that starts at `start`, and the position after the closing
    /// braces. `start` must not decrease between calls.
    fn name_from<'a>(&mut self, text: &'a str, start: usize) -> Option<(&'a str, usize)> {
        if !self.is_exhausted && self.position.is_none_or(|at| at < start) {
            self.position = text
                .get(start..)
                .and_then(|rest| rest.find("}}"))
                .map(|at| start + at);
            self.is_exhausted = self.position.is_none();
            self.text_end = text
                .get(..self.position.unwrap_or_default())
                .unwrap_or_default()
                .trim_end_matches(NAME_WHITESPACE)
                .len();
        }
        let closing = self.position?;
        // If there is only white space in between, the name is empty.
        let name = text
            .get(start..self.text_end)
            .unwrap_or_default()
            .trim_start_matches(NAME_WHITESPACE);
        Some((name, closing + 2))
    }
}

#[cfg(test)]
mod tests;
