//! Validation of guest replies and their conversion to the host's types. Rejects replies that
//! violate the contract or a limit.

use std::sync::Arc;

use bytesize::ByteSize;
use toolbay_model::{
    CallError, CallReply, CompletionResult, EmbeddedResource, Interrupt, JsonSize, Limit, Limits,
    PromptMessage, PromptOutput, ResourceContent, ResourceItem, ToolOutput,
};
use toolbay_secrets::SecretFilter;

use crate::reply::cleaner::{TextCleaner, quote};
use crate::reply::content::convert_block;
use crate::reply::guest_reply::{
    ArgumentSuggestions, FilledPrompt, GuestFailure, GuestReply, ReadResource, ResourceReplyItem,
    ResultPart, ToolResult,
};
use crate::reply::result_parts::{self, PartsError};
use crate::reply::syntax::{is_mime_type, is_uri};

/// Maximum length of a completion value, in bytes. A longer value is omitted, because a truncated
/// one would be a different value.
const MAX_COMPLETION_VALUE_BYTES: usize = 1 << 10;

/// A guest's reply, or the failure that it reported. It is neither checked nor cleaned.
#[derive(Debug)]
pub struct UncheckedReply {
    pub(crate) returned: Result<GuestReply, GuestFailure>,
    /// The secrets of the call.
    pub(crate) secrets: Arc<SecretFilter>,
}

impl UncheckedReply {
    /// Returns the number of bytes to check.
    pub fn size(&self) -> usize {
        match &self.returned {
            Ok(returned) => returned.size(),
            Err(
                GuestFailure::InvalidArguments(text)
                | GuestFailure::Failed(text)
                | GuestFailure::Malformed(text),
            ) => text.len(),
        }
    }

    /// Checks the reply against its bounds and the contract, and strips control characters and
    /// secrets from all text. Returns `None` if the guest reported that there is no resource with
    /// this URI.
    ///
    /// If `max_tool_result` is larger than [`Limits::output`], it is the size limit for the result
    /// of a tool, of which the client then receives a part.
    ///
    /// Takes about 10 ms per megabyte. The bounds limit the size.
    ///
    /// # Errors
    ///
    /// Returns the failure that the guest reported, the violated bound or rule, or
    /// [`Limit::Deadline`] if `interrupt` was due first.
    pub fn check(
        self,
        limits: &Limits,
        max_tool_result: Option<ByteSize>,
        interrupt: &Interrupt,
    ) -> Result<Option<CallReply>, CallError> {
        let Self { returned, secrets } = self;
        match returned {
            Ok(returned) => check(returned, limits, max_tool_result, &secrets, interrupt),
            Err(GuestFailure::InvalidArguments(text)) => Err(CallError::InvalidArguments(
                failure_message(text, limits, &secrets),
            )),
            Err(GuestFailure::Failed(text)) => {
                Err(CallError::Failed(failure_message(text, limits, &secrets)))
            }
            Err(GuestFailure::Malformed(why)) => Err(CallError::InvalidOutput(failure_message(
                why, limits, &secrets,
            ))),
        }
    }
}

/// Checks a reply against its bounds and the contract.
fn check(
    returned: GuestReply,
    limits: &Limits,
    max_tool_result: Option<ByteSize>,
    secrets: &SecretFilter,
    interrupt: &Interrupt,
) -> Result<Option<CallReply>, CallError> {
    let mut cleaner = TextCleaner::new(secrets).with_interrupt(interrupt);
    let checked = match returned {
        // Excess values are truncated, not rejected.
        GuestReply::Completion(suggestions) => Ok(Some(CallReply::Completion(convert_completion(
            suggestions,
            &mut cleaner,
        )))),
        returned => {
            check_bounds(&returned, limits, max_tool_result)?;
            clean_reply(returned, &mut cleaner, |parts| {
                assemble_result(parts, limits, max_tool_result, interrupt)
            })
        }
    };
    // Discard the reply in any case: parts of it were not cleaned.
    if cleaner.is_interrupted() {
        Err(CallError::limit(Limit::Deadline(limits.timeout)))
    } else {
        checked
    }
}

/// Checks the number of items and the size of a reply.
///
/// # Errors
///
/// Returns the exceeded limit.
fn check_bounds(
    returned: &GuestReply,
    limits: &Limits,
    max_tool_result: Option<ByteSize>,
) -> Result<(), CallError> {
    if returned.item_count() > limits.output_items {
        return Err(CallError::limit(Limit::OutputItems(limits.output_items)));
    }
    let is_tool = matches!(returned, GuestReply::Tool(_) | GuestReply::Parts(_));
    check_size(
        returned.size(),
        returned.json_texts(),
        limits,
        max_tool_result.filter(|_| is_tool),
    )
}

/// Like [`check_bounds`], for a reply of `size` bytes with these JSON texts.
fn check_size<'a>(
    size: usize,
    json: impl Iterator<Item = &'a String>,
    limits: &Limits,
    max_tool_result: Option<ByteSize>,
) -> Result<(), CallError> {
    let (max_bytes, limit) = max_size(limits, max_tool_result);
    if size as u64 > max_bytes.as_u64() {
        return Err(CallError::limit(limit));
    }
    // The guest's memory is already free, so the parsed values may use as much.
    if json.map(|text| JsonSize::measure(text).memory).sum::<u64>() > limits.memory.as_u64() {
        return Err(CallError::limit(Limit::Parsed(limits.memory)));
    }
    Ok(())
}

/// Returns the maximum size of a reply, and the limit that a larger one exceeds.
fn max_size(limits: &Limits, max_tool_result: Option<ByteSize>) -> (ByteSize, Limit) {
    match max_tool_result.filter(|kept| *kept > limits.output) {
        Some(max) => (max, Limit::ResultSize(max)),
        None => (limits.output, Limit::Output(limits.output)),
    }
}

/// Assembles a result from its parts, and checks its size again: CBOR becomes longer as JSON.
fn assemble_result(
    parts: Vec<ResultPart>,
    limits: &Limits,
    max_tool_result: Option<ByteSize>,
    interrupt: &Interrupt,
) -> Result<ToolResult, CallError> {
    let (max_bytes, limit) = max_size(limits, max_tool_result);
    let result = result_parts::combine(
        parts,
        usize::try_from(max_bytes.as_u64()).unwrap_or(usize::MAX),
        interrupt,
    );
    let result = result.map_err(|error| match error {
        PartsError::Malformed(why) => CallError::InvalidOutput(why),
        PartsError::TooLarge => CallError::limit(limit),
        PartsError::Interrupted => CallError::limit(Limit::Deadline(limits.timeout)),
    })?;
    check_size(
        result.size(),
        result.structured.iter(),
        limits,
        max_tool_result,
    )?;
    Ok(result)
}

/// Cleans a reply and converts it.
///
/// # Errors
///
/// Returns the violated rule of the contract, or the error of `assemble`.
fn clean_reply(
    returned: GuestReply,
    cleaner: &mut TextCleaner<'_>,
    assemble: impl FnOnce(Vec<ResultPart>) -> Result<ToolResult, CallError>,
) -> Result<Option<CallReply>, CallError> {
    let reply = match returned {
        GuestReply::Tool(result) => convert_tool_result(result, cleaner).map(CallReply::Tool),
        GuestReply::Parts(parts) => {
            convert_tool_result(assemble(parts)?, cleaner).map(CallReply::Tool)
        }
        GuestReply::Prompt(prompt) => convert_prompt(prompt, cleaner).map(CallReply::Prompt),
        GuestReply::Resource(read) if read.items.is_empty() => return Ok(None),
        GuestReply::Resource(read) => convert_resource(read, cleaner).map(CallReply::Resource),
        GuestReply::Completion(suggestions) => Ok(CallReply::Completion(convert_completion(
            suggestions,
            cleaner,
        ))),
        // Questions were checked and cleaned when the guest asked them.
        GuestReply::Questions(interview) => Ok(CallReply::Questions(interview)),
    };
    reply.map(Some).map_err(CallError::InvalidOutput)
}

fn convert_tool_result(
    result: ToolResult,
    cleaner: &mut TextCleaner<'_>,
) -> Result<ToolOutput, String> {
    let convert = |(index, block)| {
        convert_block(block, cleaner).map_err(|what| format!("content[{index}] {what}"))
    };
    let content = result
        .content
        .into_iter()
        .enumerate()
        .map(convert)
        .collect::<Result<_, _>>()?;
    let structured = result
        .structured
        .map(|text| cleaner.clean_json("structured", &text))
        .transpose()?;
    Ok(ToolOutput {
        content,
        structured,
        meta: cleaner.clean_meta("meta", result.meta.as_ref())?,
    })
}

fn convert_prompt(
    prompt: FilledPrompt,
    cleaner: &mut TextCleaner<'_>,
) -> Result<PromptOutput, String> {
    let description = prompt.description.map(|text| cleaner.clean_text(text));
    let convert_message = |(index, (role, block))| match convert_block(block, cleaner) {
        Ok(content) => Ok(PromptMessage { role, content }),
        Err(what) => Err(format!("messages[{index}] {what}")),
    };
    let messages = prompt
        .messages
        .into_iter()
        .enumerate()
        .map(convert_message)
        .collect::<Result<_, _>>()?;
    Ok(PromptOutput {
        description,
        messages,
        meta: cleaner.clean_meta("meta", prompt.meta.as_ref())?,
    })
}

fn convert_resource(
    read: ReadResource,
    cleaner: &mut TextCleaner<'_>,
) -> Result<Vec<ResourceItem>, String> {
    let ReadResource { uri, items } = read;
    let convert_item = |(index, item): (usize, ResourceReplyItem)| {
        let meta = cleaner.clean_meta(&format!("contents[{index}].meta"), item.meta.as_ref())?;
        let resource = convert_resource_item(&uri, item, cleaner)
            .map_err(|what| format!("contents[{index}] {what}"))?;
        Ok(ResourceItem { resource, meta })
    };
    items.into_iter().enumerate().map(convert_item).collect()
}

/// Converts an item of the resource at `requested_uri`, without its `_meta`.
fn convert_resource_item(
    requested_uri: &str,
    item: ResourceReplyItem,
    cleaner: &mut TextCleaner<'_>,
) -> Result<EmbeddedResource, String> {
    // Compare before cleaning, because stripping characters could change the URI.
    let is_below = is_at_or_below(&item.uri, requested_uri);
    let uri = cleaner.clean_text(item.uri);
    if !is_uri(&uri) {
        return Err(format!(
            "has an invalid URI (no scheme, or a space in it): {}",
            quote(&uri)
        ));
    }
    if !is_below {
        return Err(format!(
            "has the URI {}, which is neither the one that was read nor one below it",
            quote(&uri)
        ));
    }
    let mime_type = item.mime_type.map(|text| cleaner.clean_text(text));
    if let Some(mime_type) = mime_type.as_deref().filter(|text| !is_mime_type(text)) {
        return Err(format!("has an invalid MIME type: {}", quote(mime_type)));
    }
    let content = match (item.text, item.data) {
        (Some(text), None) => ResourceContent::Text(cleaner.clean_text(text)),
        (None, Some(data)) => ResourceContent::Blob(cleaner.check_data(data)?),
        (None, None) => return Err("has neither `text` nor `data`".into()),
        (Some(_), Some(_)) => return Err("has both `text` and `data`".into()),
    };
    Ok(EmbeddedResource {
        uri,
        mime_type,
        content,
    })
}

/// Returns whether a plugin may return an item with this URI for `requested_uri`: the same URI, or
/// one that extends it by another component.
fn is_at_or_below(uri: &str, requested_uri: &str) -> bool {
    let is_end = |rest: &str| {
        rest.is_empty() || requested_uri.ends_with(['/', ':']) || rest.starts_with(['/', '?', '#'])
    };
    uri.strip_prefix(requested_uri).is_some_and(is_end)
}

fn convert_completion(
    suggestions: ArgumentSuggestions,
    cleaner: &mut TextCleaner<'_>,
) -> CompletionResult {
    let ArgumentSuggestions {
        values: mut all,
        total,
        has_more,
    } = suggestions;
    let total_count = all.len();
    all.truncate(CompletionResult::MAX_VALUES);
    let is_short = |value: &String| value.len() <= MAX_COMPLETION_VALUE_BYTES;
    // Filter twice, because a secret can be shorter than its replacement.
    let clean = all
        .into_iter()
        .filter(is_short)
        .map(|value| cleaner.clean_text(value))
        .filter(is_short);
    let values: Vec<String> = clean.collect();
    let shown_count = values.len();
    let total = total.filter(|total| *total as usize >= total_count);
    let has_more = has_more
        || shown_count < total_count
        || total.is_some_and(|total| total as usize > shown_count);
    CompletionResult {
        values,
        total,
        has_more,
    }
}

/// Cleans the message of a failure, and truncates it to the maximum size of a result.
fn failure_message(text: String, limits: &Limits, secrets: &SecretFilter) -> String {
    let mut text = TextCleaner::new(secrets).clean_text(text);
    if text.trim().is_empty() {
        return "The plugin gave no reason.".to_owned();
    }
    let max_bytes = usize::try_from(limits.output.as_u64()).unwrap_or(usize::MAX);
    text.truncate(text.floor_char_boundary(max_bytes));
    text
}

#[cfg(test)]
mod tests;
