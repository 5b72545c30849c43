//! Prints the result of a call, as text or as JSON.

use std::fmt::Write as _;
use std::process::ExitCode;

use serde_json::Value;
use toolbay_mcp::{Revision, result_json};
use toolbay_model::text::{clean_line, format_thousands};
use toolbay_model::{CallFailure, CallResult, CallUsage, TargetKind};

use super::output::{complain, flush_messages, print, print_json};

/// Maximum length of a printed problem, in bytes. Parts of it come from the plugin.
pub(super) const MAX_PROBLEM_BYTES: usize = 2_000;

/// Prints the result of a call, and returns the exit code.
pub(super) fn print_answer(answer: CallResult, json: bool) -> ExitCode {
    let usage = answer.usage;
    let failed = answer.result.is_err();
    // What the plugin reported comes before its result.
    flush_messages();
    if let Err(CallFailure::Unknown(unknown)) = &answer.result {
        complain(&format!("unknown {} {:?}", unknown.kind, unknown.name));
        return ExitCode::FAILURE;
    }
    match result_json(answer, TargetKind::Tool, Revision::NEWEST) {
        Ok(result) if json => {
            if let Err(error) = print_json(&result) {
                complain(&error.to_string());
                return ExitCode::FAILURE;
            }
        }
        Ok(result) => {
            print(&render_text(&result));
            if let Some(usage) = usage {
                complain(&usage_summary(usage));
            }
        }
        Err(message) => complain(&message),
    }
    if failed {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    }
}

/// Returns whether the log shows the problems of plugins.
pub(super) fn are_problems_logged() -> bool {
    tracing::enabled!(target: "toolbay_catalog", tracing::Level::WARN)
}

/// Prints the problems of a plugin, unless the log shows them.
pub(super) fn print_problems(plugin: &str, problems: &[String]) {
    if are_problems_logged() {
        return;
    }
    for problem in problems {
        complain(&format!(
            "plugin {plugin:?}: {}",
            clean_line(problem, MAX_PROBLEM_BYTES)
        ));
    }
}

/// Prints a result as text.
pub(super) fn print_result_text(result: &Value) {
    print(&render_text(result));
}

/// Returns a result as text. Text blocks are unchanged. Each other block is one line that describes
/// it.
fn render_text(result: &Value) -> String {
    let mut out = String::new();
    for block in result
        .get("content")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        let member = |name: &str| block.get(name).and_then(Value::as_str).unwrap_or_default();
        let _ = match member("type") {
            "text" => writeln!(out, "{}", member("text")),
            // Binary content, such as images and audio.
            kind if block.get("data").is_some() => {
                // Four characters of base64 are three bytes.
                writeln!(
                    out,
                    "[{kind}, {}, {} bytes]",
                    member("mimeType"),
                    member("data").trim_end_matches('=').len() * 3 / 4
                )
            }
            kind => writeln!(out, "[{kind}] {block}"),
        };
    }
    out
}

fn usage_summary(usage: CallUsage) -> String {
    let memory = bytesize::ByteSize::b(usage.memory)
        .display()
        .iec()
        .to_string();
    let part = |noun: &str, count: u64, bytes: u64| match count {
        0 => String::new(),
        1 => format!(
            ", 1 {noun} of {}",
            bytesize::ByteSize::b(bytes).display().iec()
        ),
        n => format!(
            ", {n} {noun}s of {}",
            bytesize::ByteSize::b(bytes).display().iec()
        ),
    };
    let http = part("HTTP request", usage.http_requests, usage.http_bytes);
    let tcp = part("TCP connection", usage.tcp_connections, usage.tcp_bytes);
    format!(
        "{} fuel, {:.1} ms, {memory} peak memory{http}{tcp}",
        format_thousands(usage.fuel),
        usage.wall.as_secs_f64() * 1000.0
    )
}
