//! Converts the responses of guests that are MCP servers to the host's types.

use toolbay_guest_mcp::results::{
    self, CallToolResult, GuestQuestionKind, GuestQuestions, GuestResult, PromptResult, ReadItem,
};
use toolbay_guest_mcp::{GuestBlock, ProtocolError, RequestOutcome};
use toolbay_model::text::clean_line;

use super::message_reader::RequestReply;
use crate::capability::input_request::{RawQuestion, RawQuestionKind};
use crate::context::plugin_request::PluginRequest;
use crate::reply::block;
use crate::reply::guest_reply::{
    self, ArgumentSuggestions, FilledPrompt, GuestFailure, GuestReply, ReadResource,
    ResourceReplyItem,
};

/// Maximum length of guest text that a message quotes, in bytes.
const MAX_QUOTED_BYTES: usize = 120;

/// A converted response.
pub(super) enum ConvertedResponse {
    /// The requested result.
    Reply(GuestReply),
    /// Questions, and the request state that the guest gets back with the answers.
    Questions(Vec<RawQuestion>, Option<String>),
}

/// Converts the response of a guest.
pub(super) fn convert_response(
    plugin_request: PluginRequest<'_>,
    outcome: Result<String, ProtocolError>,
) -> Result<ConvertedResponse, GuestFailure> {
    let result = match outcome {
        Ok(result) => result,
        Err(problem) => return convert_error(plugin_request, problem),
    };
    let converted = match plugin_request {
        PluginRequest::Tool { .. } => {
            match results::parse_tool_result(&result).map_err(GuestFailure::Malformed)? {
                GuestResult::Done(result) if result.is_error => {
                    return Err(GuestFailure::Failed(result.failure_text()));
                }
                GuestResult::Done(result) => {
                    ConvertedResponse::Reply(GuestReply::Tool(convert_tool_result(result)))
                }
                GuestResult::NeedsInput(questions) => convert_questions(questions),
            }
        }
        PluginRequest::Prompt { .. } => {
            match results::parse_prompt_result(&result).map_err(GuestFailure::Malformed)? {
                GuestResult::Done(prompt) => {
                    ConvertedResponse::Reply(GuestReply::Prompt(convert_prompt(prompt)))
                }
                GuestResult::NeedsInput(questions) => convert_questions(questions),
            }
        }
        PluginRequest::Resource { uri } => {
            match results::parse_resource_result(&result).map_err(GuestFailure::Malformed)? {
                GuestResult::Done(items) => {
                    ConvertedResponse::Reply(GuestReply::Resource(convert_resource(uri, items)))
                }
                GuestResult::NeedsInput(questions) => convert_questions(questions),
            }
        }
        PluginRequest::Completion(_) => {
            let results::CompletionValues {
                values,
                total,
                has_more,
            } = results::parse_completion_result(&result).map_err(GuestFailure::Malformed)?;
            ConvertedResponse::Reply(GuestReply::Completion(ArgumentSuggestions {
                values,
                total,
                has_more,
            }))
        }
    };
    Ok(converted)
}

fn convert_error(
    plugin_request: PluginRequest<'_>,
    problem: ProtocolError,
) -> Result<ConvertedResponse, GuestFailure> {
    match plugin_request {
        PluginRequest::Resource { uri } if problem.is_resource_not_found() => Ok(
            ConvertedResponse::Reply(GuestReply::Resource(convert_resource(uri, Vec::new()))),
        ),
        _ if problem.is_invalid_params() => Err(GuestFailure::InvalidArguments(problem.message)),
        _ if problem.message.trim().is_empty() => Err(GuestFailure::Failed(format!(
            "The MCP server failed with the error {}.",
            problem.code
        ))),
        _ => Err(GuestFailure::Failed(problem.message)),
    }
}

fn convert_tool_result(result: CallToolResult) -> guest_reply::ToolResult {
    let CallToolResult {
        content,
        structured,
        meta,
        is_error: _,
    } = result;
    guest_reply::ToolResult {
        content: content.into_iter().map(convert_block).collect(),
        structured,
        meta,
    }
}

fn convert_prompt(prompt: PromptResult) -> FilledPrompt {
    let PromptResult {
        description,
        messages,
        meta,
    } = prompt;
    FilledPrompt {
        description,
        messages: messages
            .into_iter()
            .map(|(role, content)| (role, convert_block(content)))
            .collect(),
        meta,
    }
}

fn convert_resource(uri: &str, items: Vec<ReadItem>) -> ReadResource {
    let item = |item: ReadItem| {
        let ReadItem {
            uri,
            mime_type,
            text,
            data,
            meta,
        } = item;
        ResourceReplyItem {
            uri,
            mime_type,
            text,
            data,
            meta,
        }
    };
    ReadResource {
        uri: uri.to_owned(),
        items: items.into_iter().map(item).collect(),
    }
}

fn convert_questions(guest_questions: GuestQuestions) -> ConvertedResponse {
    let to_raw_question = |question: results::GuestQuestion| RawQuestion {
        key: question.key,
        kind: match question.kind {
            GuestQuestionKind::Form => RawQuestionKind::Form,
            GuestQuestionKind::Url => RawQuestionKind::Url,
            GuestQuestionKind::Sampling => RawQuestionKind::Sampling,
            GuestQuestionKind::Roots => RawQuestionKind::Roots,
        },
        params: question.params,
        // The guest received the client's capabilities, so every question that it asks is required.
        is_required: true,
    };
    ConvertedResponse::Questions(
        guest_questions
            .questions
            .into_iter()
            .map(to_raw_question)
            .collect(),
        guest_questions.state,
    )
}

/// Converts a content block. Two kinds have different names in the contract.
fn convert_block(guest_block: GuestBlock) -> block::RawBlock {
    let kind = match guest_block.kind.as_str() {
        "resource_link" => "resource-link".to_owned(),
        "resource" => "embedded-resource".to_owned(),
        _ => guest_block.kind,
    };
    block::RawBlock {
        kind,
        text: guest_block.text,
        data: guest_block.data,
        mime_type: guest_block.mime_type,
        uri: guest_block.uri,
        name: guest_block.name,
        title: guest_block.title,
        description: guest_block.description,
        size: guest_block.size,
        audience: guest_block.audience,
        priority: guest_block.priority,
        last_modified: guest_block.last_modified,
        members: None,
    }
}

/// Describes an HTTP status and the beginning of its body, for messages.
pub(super) fn describe_status(status: u16, body: &str) -> String {
    let reason = http::StatusCode::from_u16(status)
        .ok()
        .and_then(|status| status.canonical_reason());
    let status = reason.map_or_else(|| status.to_string(), |reason| format!("{status} {reason}"));
    let body = clean_line(body.trim(), MAX_QUOTED_BYTES);
    let body = body.trim_end();
    if body.is_empty() {
        format!("{status} without a body")
    } else {
        format!("{status}, \"{body}\"")
    }
}

/// Returns the name of a `wasi:http` error as lowercase words, without its payload.
pub(super) fn describe_error_code(error: &impl std::fmt::Debug) -> String {
    let debug_text = format!("{error:?}");
    let variant = debug_text
        .split(['(', ' '])
        .next()
        .and_then(|path| path.rsplit("::").next())
        .unwrap_or_default();
    let mut words = String::new();
    for letter in variant.chars() {
        if letter.is_uppercase() && !words.is_empty() {
            words.push(' ');
        }
        words.extend(letter.to_lowercase());
    }
    words
}

/// Describes a guest's response, for messages.
pub(super) fn describe_response(reply: &RequestReply) -> String {
    match reply {
        RequestReply::Outcome(RequestOutcome::Result(result)) => {
            format!("it answered \"{}\"", clean_line(result, MAX_QUOTED_BYTES))
        }
        RequestReply::Outcome(RequestOutcome::Error(ProtocolError { code, message, .. })) => {
            format!(
                "it answered with the error {code}, \"{}\"",
                clean_line(message, MAX_QUOTED_BYTES)
            )
        }
        RequestReply::NotMcp(code, body) => format!("it answered {}", describe_status(*code, body)),
        RequestReply::Malformed(why) => clean_line(why, 2 * MAX_QUOTED_BYTES),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn responses_are_described_on_one_line() {
        let cases = [
            RequestReply::NotMcp(404, "Not\nfound \u{1b}[2J".into()),
            RequestReply::NotMcp(404, String::new()),
            RequestReply::NotMcp(799, "x".repeat(1000)),
            RequestReply::Outcome(RequestOutcome::Error(ProtocolError {
                code: -32601,
                message: "no".into(),
                missing_capabilities: Vec::new(),
            })),
            RequestReply::Outcome(RequestOutcome::Result("{}".into())),
            RequestReply::Malformed("its HTTP handler gave no response".into()),
        ];
        let descriptions: Vec<String> = cases.iter().map(describe_response).collect();
        let long = format!("it answered 799, \"{}…\"", "x".repeat(117));
        assert_eq!(
            descriptions,
            [
                r#"it answered 404 Not Found, "Not\nfound""#,
                "it answered 404 Not Found without a body",
                &long,
                r#"it answered with the error -32601, "no""#,
                r#"it answered "{}""#,
                "its HTTP handler gave no response",
            ]
        );
    }

    #[test]
    fn errors_of_http_are_named_in_words() {
        use wasmtime_wasi_http::p2::bindings::http::types::{DnsErrorPayload, ErrorCode};

        assert_eq!(
            describe_error_code(&ErrorCode::ConnectionRefused),
            "connection refused"
        );
        let dns = DnsErrorPayload {
            rcode: Some("a(b::C".into()),
            info_code: None,
        };
        assert_eq!(describe_error_code(&ErrorCode::DnsError(dns)), "dns error");
    }

    #[test]
    fn protocol_errors_are_converted() {
        let problem = |code, message: &str| ProtocolError {
            code,
            message: message.to_owned(),
            missing_capabilities: Vec::new(),
        };
        let tool = PluginRequest::Tool {
            name: "a",
            arguments: "{}",
        };
        let convert = |request, problem| convert_response(request, Err(problem));
        assert!(
            matches!(convert(tool, problem(-32602, "no a")), Err(GuestFailure::InvalidArguments(why)) if why == "no a")
        );
        assert!(
            matches!(convert(tool, problem(-32603, "oh")), Err(GuestFailure::Failed(why)) if why == "oh")
        );
        assert!(
            matches!(convert(tool, problem(-1, "")), Err(GuestFailure::Failed(why)) if why.contains("-1"))
        );
        for code in [-32602, -32002] {
            let missing = convert(
                PluginRequest::Resource { uri: "a:b" },
                problem(code, "gone"),
            );
            assert!(
                matches!(missing, Ok(ConvertedResponse::Reply(GuestReply::Resource(read))) if read.items.is_empty())
            );
        }
    }
}
