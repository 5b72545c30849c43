//! Safe rendering of a call result: text, and images of types that cannot run scripts.

use maud::{Markup, html};
use serde_json::Value;
use toolbay_model::CallUsage;
use toolbay_model::text::clean;

use super::elements::outcome_badge;
use crate::formatting::{format_amount, format_duration, format_size};

/// Maximum size of a displayed text, in bytes.
const MAX_TEXT_BYTES: usize = 256 << 10;

/// Maximum size of a displayed image, in base64 characters.
const MAX_IMAGE_CHARS: usize = 4 << 20;

/// Maximum number of displayed blocks.
const MAX_BLOCKS: usize = 200;

/// The image types that are displayed. SVG is excluded, because it is an active document.
const IMAGE_TYPES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// Renders the result that a client receives, or the error message that it receives instead.
pub(super) fn result(
    result: &Result<Value, String>,
    outcome: &str,
    usage: Option<&CallUsage>,
) -> Markup {
    html! {
        section.result aria-labelledby="result" {
            h2 #result tabindex="-1" autofocus { "Result " (outcome_badge(outcome)) }
            @if let Some(usage) = usage { (usage_facts(usage)) }
            @match result {
                Err(message) => { p.error { (message) } }
                Ok(result) => { (contents(result)) }
            }
        }
    }
}

fn usage_facts(usage: &CallUsage) -> Markup {
    html! {
        dl.facts.used {
            div { dt { "Time" } dd { (format_duration(usage.wall)) } }
            div { dt { "Fuel" } dd { (format_amount(usage.fuel)) } }
            div { dt { "Peak memory" } dd { (format_size(usage.memory)) } }
            @if usage.http_requests > 0 { div { dt { "HTTP requests" } dd { (usage.http_requests) " (" (format_size(usage.http_bytes)) ")" } } }
            @if usage.tcp_connections > 0 { div { dt { "TCP connections" } dd { (usage.tcp_connections) " (" (format_size(usage.tcp_bytes)) ")" } } }
        }
    }
}

fn contents(result: &Value) -> Markup {
    let blocks = result
        .get("content")
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default();
    let structured = result.get("structuredContent");
    html! {
        @for content in blocks.iter().take(MAX_BLOCKS) { (block(content)) }
        @if blocks.len() > MAX_BLOCKS { p.hint { "and " (blocks.len() - MAX_BLOCKS) " more blocks" } }
        @if blocks.is_empty() && structured.is_none() { p.empty { "The result is empty." } }
        @if let Some(structured) = structured {
            h3 { "Structured content" }
            (text(&format!("{structured:#}")))
        }
    }
}

fn block(content: &Value) -> Markup {
    let member = |name: &str| {
        content
            .get(name)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let kind = member("type");
    let media = member("mimeType");
    let data = member("data");
    // Four characters of base64 encode three bytes.
    let bytes = (data.trim_end_matches('=').len() * 3 / 4) as u64;
    html! {
        @match kind {
            "text" => { (text(member("text"))) }
            "image" if IMAGE_TYPES.contains(&media) && data.len() <= MAX_IMAGE_CHARS && is_base64(data) => {
                p { img src={ "data:" (media) ";base64," (data) } alt={ "Image of the result, " (media) ", " (format_size(bytes)) }; }
            }
            "image" | "audio" => { p.hint { (kind) ", " (media) ", " (format_size(bytes)) ", which is not shown here" } }
            _ => { (text(&format!("{content:#}"))) }
        }
    }
}

fn is_base64(data: &str) -> bool {
    data.bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'='))
}

/// Renders text verbatim.
fn text(text: &str) -> Markup {
    let excerpt = text
        .get(..text.floor_char_boundary(MAX_TEXT_BYTES))
        .unwrap_or_default();
    html! {
        pre tabindex="0" { (clean(excerpt)) }
        @if excerpt.len() < text.len() { p.hint { "This is the beginning; " (format_size((text.len() - excerpt.len()) as u64)) " more are not shown." } }
    }
}
