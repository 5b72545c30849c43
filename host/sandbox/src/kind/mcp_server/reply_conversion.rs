//! Converts the responses of guests that are MCP servers to the host's types.

use toolbay_guest_mcp::results::{
    self, CallToolResult, GuestQuestionKind, GuestQuestions, GuestResult, PromptResult, ReadItem,
};
use toolbay_guest_mcp::{GuestBlock, ProtocolError, RequestOutcome};
use toolbay_model::text::clean_line;

use super::message_reader::RequestReply;
use crate::capability::input_request::{PosedKind, RawQuestion};
use crate::context::plugin_request::PluginRequest;
use crate::reply::block;
use crate::reply::guest_reply::{
    self, ArgumentSuggestions, FilledPrompt, GuestFailure, GuestReply, ReadResource,
    ResourceReplyItem,
};

/// Maximum length of guest text that a message quotes, in bytes.
const MAX_QUOTED_BYTES: usize = 120;

/// A converted response.
pub(super) enum ReplyText {
    /// The requested result.
    Reply(GuestReply),
    /// Questions, and the request state that the guest gets back with the answers.
    Questions(Vec<RawQuestion>, Option<String>),
}

/// Converts the response of a guest.
pub(super) fn convert_response(
    asked: PluginRequest<'_>,
    outcome: Result<String, ProtocolError>,
) -> Result<ReplyText, GuestFailure> {
    let result = match outcome {
        Ok(result) => result,
        Err(problem) => return convert_error(asked, problem),
    };
    let words = match asked {
        PluginRequest::Tool { .. } => {
            match results::parse_tool_result(&result).map_err(GuestFailure::Malformed)? {
                GuestResult::Done(result) if result.is_error => {
                    return Err(GuestFailure::Failed(result.failure_text()));
                }
                GuestResult::Done(result) => {
                    ReplyText::Reply(GuestReply::Tool(convert_tool_result(result)))
                }
                GuestResult::NeedsInput(asks) => convert_questions(asks),
            }
        }
        PluginRequest::Prompt { .. } => {
            match results::parse_prompt_result(&result).map_err(GuestFailure::Malformed)? {
                GuestResult::Done(filled) => {
                    ReplyText::Reply(GuestReply::Prompt(convert_prompt(filled)))
                }
                GuestResult::NeedsInput(asks) => convert_questions(asks),
            }
        }
        PluginRequest::Resource { uri } => {
            match results::parse_resource_result(&result).map_err(GuestFailure::Malformed)? {
                GuestResult::Done(items) => {
                    ReplyText::Reply(GuestReply::Resource(convert_resource(uri, items)))
                }
                GuestResult::NeedsInput(asks) => convert_questions(asks),
            }
        }
        PluginRequest::Completion(_) => {
            let results::CompletionValues {
                values,
                total,
                has_more,
            } = results::parse_completion_result(&result).map_err(GuestFailure::Malformed)?;
            ReplyText::Reply(GuestReply::Completion(ArgumentSuggestions {
                values,
                total,
                has_more,
            }))
        }
    };
    Ok(words)
}

fn convert_error(
    asked: PluginRequest<'_>,
    problem: ProtocolError,
) -> Result<ReplyText, GuestFailure> {
    match asked {
        PluginRequest::Resource { uri } if problem.is_resource_not_found() => Ok(ReplyText::Reply(
            GuestReply::Resource(convert_resource(uri, Vec::new())),
        )),
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

fn convert_prompt(filled: PromptResult) -> FilledPrompt {
    let PromptResult {
        description,
        messages,
        meta,
    } = filled;
    FilledPrompt {
        description,
        messages: messages
            .into_iter()
            .map(|(role, said)| (role, convert_block(said)))
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

fn convert_questions(asks: GuestQuestions) -> ReplyText {
    let posed = |asked: results::GuestQuestion| RawQuestion {
        key: asked.key,
        kind: match asked.kind {
            GuestQuestionKind::Form => PosedKind::Form,
            GuestQuestionKind::Url => PosedKind::Url,
            GuestQuestionKind::Sampling => PosedKind::Sampling,
            GuestQuestionKind::Roots => PosedKind::Roots,
        },
        params: asked.params,
        // The guest received the client's capabilities, so every question that it asks is required.
        required: true,
    };
    ReplyText::Questions(asks.questions.into_iter().map(posed).collect(), asks.state)
}

/// Converts a content block. Two kinds have different names in the contract.
fn convert_block(said: GuestBlock) -> block::RawBlock {
    let kind = match said.kind.as_str() {
        "resource_link" => "resource-link".to_owned(),
        "resource" => "embedded-resource".to_owned(),
        _ => said.kind,
    };
    block::RawBlock {
        kind,
        text: said.text,
        data: said.data,
        mime_type: said.mime_type,
        uri: said.uri,
        name: said.name,
        title: said.title,
        description: said.description,
        size: said.size,
        audience: said.audience,
        priority: said.priority,
        last_modified: said.last_modified,
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
    let shown = format!("{error:?}");
    let variant = shown
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
pub(super) fn describe_response(said: &RequestReply) -> String {
    match said {
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
        let shown: Vec<String> = cases.iter().map(describe_response).collect();
        let long = format!("it answered 799, \"{}…\"", "x".repeat(117));
        assert_eq!(
            shown,
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
        let failed = |asked, problem| convert_response(asked, Err(problem));
        assert!(
            matches!(failed(tool, problem(-32602, "no a")), Err(GuestFailure::InvalidArguments(why)) if why == "no a")
        );
        assert!(
            matches!(failed(tool, problem(-32603, "oh")), Err(GuestFailure::Failed(why)) if why == "oh")
        );
        assert!(
            matches!(failed(tool, problem(-1, "")), Err(GuestFailure::Failed(why)) if why.contains("-1"))
        );
        for code in [-32602, -32002] {
            let gone = failed(
                PluginRequest::Resource { uri: "a:b" },
                problem(code, "gone"),
            );
            assert!(
                matches!(gone, Ok(ReplyText::Reply(GuestReply::Resource(read))) if read.items.is_empty())
            );
        }
    }
}
