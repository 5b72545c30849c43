//! Truncation of results that are too large for their callers, as a pure function.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::time::Duration;

use bytes::Bytes;
use bytesize::ByteSize;
use serde::Serialize;
use toolbay_model::text::format_duration;
use toolbay_model::{
    ContentBlock, ContentBody, EmbeddedResource, ResourceContent, ResourceLink, ToolOutput,
};

use super::result_uri::ResultAddress;
use super::stored_result::{StoredPart, WholeResult};

/// Bytes that are reserved for the note and the link.
const NOTE_BYTES: usize = 1 << 10;

/// Minimum length of a truncated text, in bytes. Less is not shown.
const MIN_EXCERPT_BYTES: usize = 64;

/// Maximum number of missing parts that the note names.
const MAX_NAMED_PARTS: usize = 8;

/// MIME type of structured content.
const JSON_MIME_TYPE: &str = "application/json";

/// A result that fits.
#[derive(Debug)]
pub(crate) enum FittedOutput {
    /// It fits without truncation.
    Whole(ToolOutput),
    /// It was truncated.
    Truncated(FittedResult),
}

/// A truncated result, before the note is added.
#[derive(Debug)]
pub(crate) struct FittedResult {
    /// The output that is shown.
    output: ToolOutput,
    /// The whole result.
    whole: WholeResult,
    /// Descriptions of the missing parts.
    missing: Vec<String>,
    /// Maximum number of bytes that are shown.
    most: usize,
    /// True if the structured content is missing.
    pub(crate) is_unstructured: bool,
}

/// The address of a stored result, and its time to live.
#[derive(Clone, Debug)]
pub(crate) struct ResultLink {
    pub(crate) address: ResultAddress,
    pub(crate) ttl: Duration,
}

/// Returns the size of content, structured content and `_meta` in bytes, without the surrounding
/// JSON. Values count as JSON text.
pub(crate) fn output_size(output: &ToolOutput) -> usize {
    output
        .content
        .iter()
        .map(|content| content.body.byte_len())
        .sum::<usize>()
        + output.structured.as_ref().map_or(0, json_size)
        + if output.meta.is_empty() {
            0
        } else {
            json_size(&output.meta)
        }
}

/// Truncates a result to at most `max_bytes` bytes. If the tool has an output schema (`has_output_schema`),
/// structured content has priority.
pub(crate) fn truncate_output(
    output: ToolOutput,
    max_bytes: usize,
    has_output_schema: bool,
) -> FittedOutput {
    if output_size(&output) <= max_bytes {
        return FittedOutput::Whole(output);
    }
    let mut room = max_bytes.saturating_sub(NOTE_BYTES);
    let mut shown = ToolOutput::default();
    let mut parts = Vec::new();
    let mut missing = Vec::new();
    let ToolOutput {
        content,
        structured,
        meta,
    } = output;
    if json_size(&meta) <= room / 4 {
        room -= if meta.is_empty() { 0 } else { json_size(&meta) };
        shown.meta = meta;
    } else {
        // `_meta` is for programs, which do not read the resources that are stored for models.
        missing.push("the members of _meta".to_owned());
        drop(meta);
    }
    let mut is_unstructured = false;
    let value = structured.map(|value| {
        let text = value.to_string();
        if text.len() <= if has_output_schema { room } else { room / 2 } {
            room -= text.len();
            shown.structured = Some(value);
        } else {
            missing.push(format!(
                "the structured content ({})",
                format_size(text.len())
            ));
            is_unstructured = true;
        }
        text
    });
    for (number, content) in (1..).zip(content) {
        let size = content.body.byte_len();
        if size <= room {
            room -= size;
            parts.extend(stored_part(content.body.clone()));
            shown.content.push(content);
            continue;
        }
        let begun = excerpt(&content, room);
        missing.push(match &begun {
            Some((_, rest)) => format!("the last {} of block {number}", format_size(*rest)),
            None => format!(
                "block {number} ({}, {})",
                content.body.label(),
                format_size(size)
            ),
        });
        parts.extend(stored_part(content.body));
        if let Some((beginning, _)) = begun {
            room -= beginning.body.byte_len();
            shown.content.push(beginning);
        }
    }
    let has_text = shown
        .content
        .iter()
        .any(|content| content.body.text().is_some());
    if let Some(text) = value.as_ref().filter(|_| is_unstructured && !has_text) {
        // Like the text that a client without structured content receives.
        let begun = excerpt(&plain_content(ContentBody::Text(text.clone())), room);
        shown.content.extend(begun.map(|(beginning, _)| beginning));
    }
    parts.extend(value.map(|text| StoredPart::text(Some(JSON_MIME_TYPE.to_owned()), text)));
    FittedOutput::Truncated(FittedResult {
        output: shown,
        whole: WholeResult::new(parts),
        missing,
        most: max_bytes,
        is_unstructured,
    })
}

/// Truncates the text of a failure to `max_bytes` bytes, including a note, if it is longer.
pub(crate) fn truncate_message(text: &mut String, most: usize) {
    if text.len() <= most {
        return;
    }
    let all = text.len();
    text.truncate(cut_position(text, most.saturating_sub(NOTE_BYTES)));
    let _ = write!(
        text,
        "\n[Cut: the message has {}, and at most {} are shown.]",
        format_size(all),
        format_size(most)
    );
}

impl FittedResult {
    /// Returns the output for the caller: the parts that fit, and a note that names the missing
    /// parts and the address that `keep` returns, if any.
    pub(crate) fn into_output(
        self,
        tool: &str,
        keep: impl FnOnce(WholeResult) -> Option<ResultLink>,
    ) -> ToolOutput {
        let Self {
            mut output,
            whole,
            missing,
            most,
            ..
        } = self;
        let (named, more) = missing.split_at(missing.len().min(MAX_NAMED_PARTS));
        let more = if more.is_empty() {
            String::new()
        } else {
            format!(" and {} more", more.len())
        };
        let all = whole.content_size();
        let parts = whole.len();
        let mime_type = whole.mime_type().map(str::to_owned);
        let mut note = format!(
            "[Cut: this result has {}, and at most {} are shown. Missing: {}{more}.",
            format_size(all),
            format_size(most),
            named.join(", ")
        );
        let offered = keep(whole);
        match &offered {
            Some(ResultLink { address, ttl }) => {
                let ttl = format_duration(*ttl);
                // For a single text, the offset at which it continues.
                let first = output.content.first();
                let seen = first
                    .and_then(|content| content.body.text())
                    .map_or(0, str::len);
                let _ = write!(
                    note,
                    " The resource {address} has the whole result for {ttl}; appended to that URI, "
                );
                let _ = match parts {
                    1 => write!(
                        note,
                        "?offset={seen}&length={most} reads a portion, in bytes.]"
                    ),
                    _ => write!(
                        note,
                        "/0 to /{} reads one part, and a further ?offset=0&length={most} a portion of it, in bytes.]",
                        parts - 1
                    ),
                };
            }
            None => note.push_str(" The rest was not kept, because it is too large.]"),
        }
        output.content.push(plain_content(ContentBody::Text(note)));
        if let Some(ResultLink { address, .. }) = offered {
            output
                .content
                .push(plain_content(ContentBody::ResourceLink(ResourceLink {
                    uri: address.to_string(),
                    name: format!("The whole result of {tool}"),
                    title: None,
                    description: None,
                    mime_type,
                    size: Some(all as u64),
                })));
        }
        output
    }
}

fn plain_content(body: ContentBody) -> ContentBlock {
    ContentBlock {
        body,
        audience: Vec::new(),
        priority: None,
        last_modified: None,
    }
}

/// Converts a content block into a part of the whole result. A link is not stored.
fn stored_part(body: ContentBody) -> Option<StoredPart> {
    let media =
        |media: toolbay_model::MediaContent| StoredPart::media(Some(media.mime_type), media.data);
    match body {
        ContentBody::Text(text) => Some(StoredPart::text(Some("text/plain".to_owned()), text)),
        ContentBody::Image(image) => Some(media(image)),
        ContentBody::Audio(audio) => Some(media(audio)),
        ContentBody::ResourceLink(_) => None,
        ContentBody::Resource(EmbeddedResource {
            mime_type,
            content: ResourceContent::Text(text),
            ..
        }) => Some(StoredPart::text(mime_type, text)),
        ContentBody::Resource(EmbeddedResource {
            mime_type,
            content: ResourceContent::Blob(bytes),
            ..
        }) => Some(StoredPart::media(mime_type, copy_exact(&bytes))),
    }
}

/// Copies the bytes, so that they do not retain a larger allocation.
fn copy_exact(bytes: &Bytes) -> Bytes {
    Bytes::copy_from_slice(bytes)
}

/// Returns the beginning of a text, cut at a suitable position within `room`, and the number of
/// missing bytes. Returns `None` for other content, or if `room` is too small.
fn excerpt(content: &ContentBlock, room: usize) -> Option<(ContentBlock, usize)> {
    let text = content.body.text()?;
    if room < MIN_EXCERPT_BYTES {
        return None;
    }
    let end = cut_position(text, room);
    let body = ContentBody::Text(text.get(..end)?.to_owned());
    Some((
        ContentBlock {
            body,
            audience: content.audience.clone(),
            priority: content.priority,
            last_modified: content.last_modified.clone(),
        },
        text.len() - end,
    ))
}

/// Returns the position at which to cut a text so that at most `max_bytes` bytes remain: after a line,
/// otherwise after a word, otherwise after a character.
fn cut_position(text: &str, most: usize) -> usize {
    let most = text.floor_char_boundary(most);
    let Some(begin) = text.get(..most) else {
        return 0;
    };
    // A cut before these positions would lose too much, so the line or word is split instead.
    let line = most / 2;
    let word = most - most.min(1 << 10) / 2;
    let after = |at: Option<usize>, least: usize| at.map(|at| at + 1).filter(|end| *end >= least);
    after(begin.rfind('\n'), line)
        .or_else(|| after(begin.rfind(' '), word))
        .unwrap_or(most)
}

/// Returns the length of a value's JSON text, in bytes.
fn json_size(value: &impl Serialize) -> usize {
    let mut counted = CountedWriter(0);
    // Only writing could fail, and this writer does not.
    let _ = serde_json::to_writer(&mut counted, value);
    counted.0
}

/// Writer that counts bytes.
struct CountedWriter(usize);

impl Write for CountedWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn format_size(bytes: usize) -> String {
    ByteSize::b(bytes as u64).display().iec().to_string()
}

#[cfg(test)]
mod tests;
