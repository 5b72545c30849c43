//! What a guest answered, in the host's words.

use toolbay_guest_mcp::results::{self, Answered, Kind, PromptResult, Questions, ReadItem, ToolResult};
use toolbay_guest_mcp::{Block, Outcome, Problem};
use toolbay_model::text::line;

use super::intake::Said;
use crate::ask::{Posed, PosedKind};
use crate::asked::Asked;
use crate::block;
use crate::returned::{self, FilledPrompt, Item, ReadResource, Refusal, Returned, Suggestions};

/// Longest part of what a guest said that a message quotes, in bytes.
const QUOTED: usize = 120;

/// What a guest answered.
pub(super) enum Words {
    /// What it was asked for.
    Returned(Returned),
    /// Questions, and what it wants to have back with the answers.
    Questions(Vec<Posed>, Option<String>),
}

/// What came of asking a guest.
pub(super) fn returned(asked: Asked<'_>, outcome: Result<String, Problem>) -> Result<Words, Refusal> {
    let result = match outcome {
        Ok(result) => result,
        Err(problem) => return failed(asked, problem),
    };
    let words = match asked {
        Asked::Tool { .. } => match results::tool(&result).map_err(Refusal::Malformed)? {
            Answered::Done(result) if result.is_error => return Err(Refusal::Failed(result.words())),
            Answered::Done(result) => Words::Returned(Returned::Tool(tool(result))),
            Answered::Asks(asks) => questions(asks),
        },
        Asked::Prompt { .. } => match results::prompt(&result).map_err(Refusal::Malformed)? {
            Answered::Done(filled) => Words::Returned(Returned::Prompt(prompt(filled))),
            Answered::Asks(asks) => questions(asks),
        },
        Asked::Resource { uri } => match results::resource(&result).map_err(Refusal::Malformed)? {
            Answered::Done(items) => Words::Returned(Returned::Resource(read(uri, items))),
            Answered::Asks(asks) => questions(asks),
        },
        Asked::Completion(_) => {
            let results::Completed { values, total, has_more } =
                results::completion(&result).map_err(Refusal::Malformed)?;
            Words::Returned(Returned::Completion(Suggestions { values, total, has_more }))
        }
    };
    Ok(words)
}

fn failed(asked: Asked<'_>, problem: Problem) -> Result<Words, Refusal> {
    match asked {
        Asked::Resource { uri } if problem.is_no_resource() => {
            Ok(Words::Returned(Returned::Resource(read(uri, Vec::new()))))
        }
        _ if problem.is_invalid_params() => Err(Refusal::InvalidArguments(problem.message)),
        _ if problem.message.trim().is_empty() => {
            Err(Refusal::Failed(format!("The MCP server failed with the error {}.", problem.code)))
        }
        _ => Err(Refusal::Failed(problem.message)),
    }
}

fn tool(result: ToolResult) -> returned::ToolResult {
    let ToolResult { content, structured, meta, is_error: _ } = result;
    returned::ToolResult { content: content.into_iter().map(block).collect(), structured, meta }
}

fn prompt(filled: PromptResult) -> FilledPrompt {
    let PromptResult { description, messages, meta } = filled;
    FilledPrompt { description, messages: messages.into_iter().map(|(role, said)| (role, block(said))).collect(), meta }
}

fn read(uri: &str, items: Vec<ReadItem>) -> ReadResource {
    let item = |item: ReadItem| {
        let ReadItem { uri, mime_type, text, data, meta } = item;
        Item { uri, mime_type, text, data, meta }
    };
    ReadResource { uri: uri.to_owned(), items: items.into_iter().map(item).collect() }
}

fn questions(asks: Questions) -> Words {
    let posed = |asked: results::Asked| Posed {
        key: asked.key,
        kind: match asked.kind {
            Kind::Form => PosedKind::Form,
            Kind::Url => PosedKind::Url,
            Kind::Sampling => PosedKind::Sampling,
            Kind::Roots => PosedKind::Roots,
        },
        params: asked.params,
        // It knows what its caller can answer.
        required: true,
    };
    Words::Questions(asks.questions.into_iter().map(posed).collect(), asks.state)
}

/// The contract has other names for two kinds.
fn block(said: Block) -> block::Block {
    let kind = match said.kind.as_str() {
        "resource_link" => "resource-link".to_owned(),
        "resource" => "embedded-resource".to_owned(),
        _ => said.kind,
    };
    block::Block {
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

/// An HTTP status and how its body begins, for people.
pub(super) fn status(status: u16, body: &str) -> String {
    let reason = http::StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason());
    let status = reason.map_or_else(|| status.to_string(), |reason| format!("{status} {reason}"));
    let body = line(body.trim(), QUOTED);
    let body = body.trim_end();
    if body.is_empty() { format!("{status} without a body") } else { format!("{status}, \"{body}\"") }
}

/// The name of an error of `wasi:http`, for people: the words of its variant, without what it carries.
pub(super) fn code(error: &impl std::fmt::Debug) -> String {
    let shown = format!("{error:?}");
    let variant = shown.split(['(', ' ']).next().and_then(|path| path.rsplit("::").next()).unwrap_or_default();
    let mut words = String::new();
    for letter in variant.chars() {
        if letter.is_uppercase() && !words.is_empty() {
            words.push(' ');
        }
        words.extend(letter.to_lowercase());
    }
    words
}

/// What a guest said, for people.
pub(super) fn said(said: &Said) -> String {
    match said {
        Said::Outcome(Outcome::Result(result)) => format!("it answered \"{}\"", line(result, QUOTED)),
        Said::Outcome(Outcome::Problem(Problem { code, message, .. })) => {
            format!("it answered with the error {code}, \"{}\"", line(message, QUOTED))
        }
        Said::Other(code, body) => format!("it answered {}", status(*code, body)),
        Said::Wrong(why) => line(why, 2 * QUOTED),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_said_is_shown_on_one_line() {
        let cases = [
            Said::Other(404, "Not\nfound \u{1b}[2J".into()),
            Said::Other(404, String::new()),
            Said::Other(799, "x".repeat(1000)),
            Said::Outcome(Outcome::Problem(Problem { code: -32601, message: "no".into(), lacking: Vec::new() })),
            Said::Outcome(Outcome::Result("{}".into())),
            Said::Wrong("its HTTP handler gave no response".into()),
        ];
        let shown: Vec<String> = cases.iter().map(said).collect();
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

        assert_eq!(code(&ErrorCode::ConnectionRefused), "connection refused");
        let dns = DnsErrorPayload { rcode: Some("a(b::C".into()), info_code: None };
        assert_eq!(code(&ErrorCode::DnsError(dns)), "dns error");
    }

    #[test]
    fn errors_mean_what_the_protocol_says() {
        let problem = |code, message: &str| Problem { code, message: message.to_owned(), lacking: Vec::new() };
        let tool = Asked::Tool { name: "a", arguments: "{}" };
        let failed = |asked, problem| returned(asked, Err(problem));
        assert!(matches!(failed(tool, problem(-32602, "no a")), Err(Refusal::InvalidArguments(why)) if why == "no a"));
        assert!(matches!(failed(tool, problem(-32603, "oh")), Err(Refusal::Failed(why)) if why == "oh"));
        assert!(matches!(failed(tool, problem(-1, "")), Err(Refusal::Failed(why)) if why.contains("-1")));
        for code in [-32602, -32002] {
            let gone = failed(Asked::Resource { uri: "a:b" }, problem(code, "gone"));
            assert!(matches!(gone, Ok(Words::Returned(Returned::Resource(read))) if read.items.is_empty()));
        }
    }
}
