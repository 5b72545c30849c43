//! Parser of call results.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::block::{GuestBlock, decode_base64};
use crate::lists::meta_text;

/// Result of a call.
#[derive(Clone, Debug, PartialEq)]
pub enum GuestResult<T> {
    /// The requested result.
    Done(T),
    /// Questions that must be answered before the call can complete.
    NeedsInput(GuestQuestions),
}

/// Questions of a guest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GuestQuestions {
    /// Questions, in the order of their keys.
    pub questions: Vec<GuestQuestion>,
    /// State that the host sends back with the answers.
    pub state: Option<String>,
}

/// Question of a guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuestQuestion {
    /// Key that identifies the question.
    pub key: String,
    /// Kind of the question.
    pub kind: GuestQuestionKind,
    /// Parameters, a JSON object as text.
    pub params: String,
}

/// Kind of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuestQuestionKind {
    /// Form for the user.
    Form,
    /// URL that the user must visit.
    Url,
    /// Text sampled from the client's model.
    Sampling,
    /// Directories that the user works in.
    Roots,
}

/// Result of a tool call.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CallToolResult {
    /// Content blocks, in order.
    pub content: Vec<GuestBlock>,
    /// Structured content, as JSON text.
    pub structured: Option<String>,
    /// Members for `_meta`, a JSON object as text.
    pub meta: Option<String>,
    /// True if the call failed.
    pub is_error: bool,
}

/// Prompt with its arguments filled in.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PromptResult {
    /// Description of the prompt.
    pub description: Option<String>,
    /// Role and content of each message.
    pub messages: Vec<(&'static str, GuestBlock)>,
    /// Members for `_meta`, a JSON object as text.
    pub meta: Option<String>,
}

/// Content item of a resource.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReadItem {
    /// URI of the item.
    pub uri: String,
    /// MIME type of the item.
    pub mime_type: Option<String>,
    /// Text of the item.
    pub text: Option<String>,
    /// Bytes of the item.
    pub data: Option<Vec<u8>>,
    /// Members for `_meta`, a JSON object as text.
    pub meta: Option<String>,
}

/// Completion values for an argument.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CompletionValues {
    /// Values, best first.
    pub values: Vec<String>,
    /// Total number of values.
    pub total: Option<u32>,
    /// True if there are more values.
    pub has_more: bool,
}

impl CallToolResult {
    /// Returns the message of a failure: its texts, or its structured content if there are no
    /// texts.
    pub fn failure_text(&self) -> String {
        let texts: Vec<&str> = self
            .content
            .iter()
            .filter_map(|block| block.text.as_deref())
            .collect();
        let texts = texts.join("\n");
        let message = if texts.trim().is_empty() {
            self.structured.clone().unwrap_or_default()
        } else {
            texts
        };
        if message.trim().is_empty() {
            "The MCP server reports that the call failed, without a reason.".to_owned()
        } else {
            message
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ResultHead {
    result_type: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct InputRequiredFields {
    input_requests: Option<serde_json::Map<String, Value>>,
    request_state: Option<String>,
}

/// Parses a result by its type. `parse_complete` parses a complete result.
fn parse_by_type<T>(
    result: &str,
    parse_complete: impl FnOnce(&str) -> Result<T, String>,
) -> Result<GuestResult<T>, String> {
    let ResultHead { result_type } = parse_result(result)?;
    match result_type.as_deref() {
        None | Some("complete") => parse_complete(result).map(GuestResult::Done),
        Some("input_required") => parse_questions(result).map(GuestResult::NeedsInput),
        Some(other) => Err(format!(
            "its result is of the type {other:?}, which this host does not support"
        )),
    }
}

fn parse_questions(result: &str) -> Result<GuestQuestions, String> {
    let InputRequiredFields {
        input_requests,
        request_state: state,
    } = parse_result(result)?;
    let question = |(key, request): (String, Value)| {
        let params = request
            .get("params")
            .cloned()
            .unwrap_or_else(|| Value::Object(serde_json::Map::default()));
        let kind = match request.get("method").and_then(Value::as_str) {
            Some("elicitation/create")
                if params.get("mode").and_then(Value::as_str) == Some("url") =>
            {
                GuestQuestionKind::Url
            }
            Some("elicitation/create") => GuestQuestionKind::Form,
            Some("sampling/createMessage") => GuestQuestionKind::Sampling,
            Some("roots/list") => GuestQuestionKind::Roots,
            method => {
                let method = method.unwrap_or_default();
                return Err(format!(
                    "it asks for {method:?}, which this host does not support"
                ));
            }
        };
        Ok(GuestQuestion {
            key,
            kind,
            params: params.to_string(),
        })
    };
    let questions: Vec<GuestQuestion> = input_requests
        .unwrap_or_default()
        .into_iter()
        .map(question)
        .collect::<Result<_, String>>()?;
    if questions.is_empty() {
        return Err(
            "it requests another call without a question, which this host does not support"
                .to_owned(),
        );
    }
    Ok(GuestQuestions { questions, state })
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ToolResultFields {
    #[serde(default)]
    content: Vec<Box<RawValue>>,
    structured_content: Option<Box<RawValue>>,
    #[serde(default)]
    is_error: bool,
    #[serde(rename = "_meta")]
    meta: Option<Box<RawValue>>,
}

/// Parses the result of a tool call.
///
/// # Errors
///
/// Returns the reason that the result is invalid.
pub fn parse_tool_result(result: &str) -> Result<GuestResult<CallToolResult>, String> {
    parse_by_type(result, |result| {
        let ToolResultFields {
            content,
            structured_content,
            is_error,
            meta: members,
        } = parse_result(result)?;
        let block = |(index, raw): (usize, &RawValue)| {
            GuestBlock::parse(raw.get()).map_err(|why| format!("content[{index}] {why}"))
        };
        let content = content
            .iter()
            .map(|raw| &**raw)
            .enumerate()
            .map(block)
            .collect::<Result<_, _>>()?;
        let structured = structured_content
            .map(|value| value.get().to_owned())
            .filter(|text| text != "null");
        Ok(CallToolResult {
            content,
            structured,
            meta: meta_text(members.as_deref()),
            is_error,
        })
    })
}

#[derive(Deserialize)]
struct PromptResultFields {
    description: Option<String>,
    messages: Vec<PromptMessageFields>,
    #[serde(rename = "_meta")]
    meta: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
struct PromptMessageFields {
    role: String,
    content: Box<RawValue>,
}

/// Parses a prompt with its arguments filled in.
///
/// # Errors
///
/// Returns the reason that the result is invalid.
pub fn parse_prompt_result(result: &str) -> Result<GuestResult<PromptResult>, String> {
    parse_by_type(result, |result| {
        let PromptResultFields {
            description,
            messages,
            meta: members,
        } = parse_result(result)?;
        let message = |(index, message): (usize, &PromptMessageFields)| {
            let role = match message.role.as_str() {
                "user" => "user",
                "assistant" => "assistant",
                other => {
                    return Err(format!(
                        "messages[{index}] has the role {other:?}, not user or assistant"
                    ));
                }
            };
            let block = GuestBlock::parse(message.content.get())
                .map_err(|why| format!("messages[{index}] {why}"))?;
            Ok((role, block))
        };
        let messages = messages
            .iter()
            .enumerate()
            .map(message)
            .collect::<Result<_, _>>()?;
        Ok(PromptResult {
            description,
            messages,
            meta: meta_text(members.as_deref()),
        })
    })
}

#[derive(Deserialize)]
struct ResourceResultFields {
    contents: Vec<ContentItemFields>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ContentItemFields {
    uri: String,
    mime_type: Option<String>,
    text: Option<String>,
    blob: Option<String>,
    #[serde(rename = "_meta")]
    meta: Option<Box<RawValue>>,
}

/// Parses the contents of a resource.
///
/// # Errors
///
/// Returns the reason that the result is invalid.
pub fn parse_resource_result(result: &str) -> Result<GuestResult<Vec<ReadItem>>, String> {
    parse_by_type(result, |result| {
        let ResourceResultFields { contents } = parse_result(result)?;
        let item = |(index, item): (usize, ContentItemFields)| {
            let ContentItemFields {
                uri,
                mime_type,
                text,
                blob,
                meta: members,
            } = item;
            let data = blob
                .as_deref()
                .map(decode_base64)
                .transpose()
                .map_err(|why| format!("contents[{index}] {why}"))?;
            Ok(ReadItem {
                uri,
                mime_type,
                text,
                data,
                meta: meta_text(members.as_deref()),
            })
        };
        contents.into_iter().enumerate().map(item).collect()
    })
}

#[derive(Deserialize)]
struct CompletionResultFields {
    completion: CompletionValueFields,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CompletionValueFields {
    values: Vec<String>,
    total: Option<u32>,
    #[serde(default)]
    has_more: bool,
}

/// Parses completion values for an argument.
///
/// # Errors
///
/// Returns the reason that the result is invalid.
pub fn parse_completion_result(result: &str) -> Result<CompletionValues, String> {
    let CompletionResultFields {
        completion:
            CompletionValueFields {
                values,
                total,
                has_more,
            },
    } = parse_result(result)?;
    Ok(CompletionValues {
        values,
        total,
        has_more,
    })
}

fn parse_result<'a, T: Deserialize<'a>>(result: &'a str) -> Result<T, String> {
    serde_json::from_str(result).map_err(|error| format!("its result: {error}"))
}

#[cfg(test)]
mod tests;
