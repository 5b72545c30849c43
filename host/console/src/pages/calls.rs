//! The page of the newest calls.

use std::sync::Arc;

use maud::{Markup, html};

use super::elements::{outcome_badge, plugin_link, search_form, time_element, tool_link};
use super::layout::{NavigationItem, layout};
use crate::call_note::{CallNote, TextExcerpt};
use crate::formatting::{format_amount, format_count, format_duration, format_size, format_time};
use crate::page_context::PageContext;
use crate::sessions::ConsoleSession;

/// Maximum number of calls on the page.
const MAX_CALLS_SHOWN: usize = 100;

/// Renders the newest calls that mention `search`. If `failed_only` is set, only those that failed.
pub(crate) fn calls(
    desk: &PageContext,
    session: &ConsoleSession,
    wanted: &str,
    failed: bool,
) -> Markup {
    let lower = wanted.trim().to_lowercase();
    let (found, ended, missed): (Vec<Arc<CallNote>>, u64, u64) = {
        let history = desk.activity.lock_history();
        let matches = |call: &&Arc<CallNote>| {
            (!failed || call.is_failure()) && (lower.is_empty() || call.mentions(&lower))
        };
        (
            history
                .newest()
                .filter(matches)
                .take(MAX_CALLS_SHOWN)
                .cloned()
                .collect(),
            history.ended,
            history.lost,
        )
    };
    let contents = |call: &CallNote| desk.operations.may_use(&session.viewer, &call.tool);
    let only = html! { label.check { input type="checkbox" name="failed" value="yes" checked[failed]; " Failed only" } };
    let body = html! {
        (search_form("/calls", "Tool, plugin, caller or outcome", wanted, &only))
        div #calls data-live {
            p.count {
                (format_count(usize::try_from(ended).unwrap_or(usize::MAX), "call")) " since " (desk.activity.since()) "; these are the newest"
                @if missed > 0 { " (" (format_count(usize::try_from(missed).unwrap_or(usize::MAX), "call")) " came too fast to be recorded)" }
            }
            @if found.is_empty() {
                p.empty { @if ended == 0 { "No call yet. Calls of clients appear here after a second." } @else { "None of the newest calls matches." } }
            } @else {
                table.stack.calls {
                    thead { tr { th { "Time" } th { "Tool" } th { "Caller" } th { "Outcome" } th.number { "Duration" } th.number { "Fuel" } th.number { "Memory" } } }
                    tbody { @for call in &found { (row(call, contents(call))) } }
                }
            }
        }
    };
    layout(session, NavigationItem::Calls, "Calls", true, &body)
}

fn row(call: &CallNote, contents: bool) -> Markup {
    let usage = call.usage.as_ref();
    html! {
        tr {
            td data-label="Time" { (time_element(call.at)) }
            th scope="row" {
                @match &call.plugin {
                    Some(plugin) => { (tool_link(&call.tool)) " " span.of { "of " (plugin_link(plugin)) } }
                    None => { (call.tool) }
                }
                @if contents { (excerpts(call)) }
            }
            td data-label="Caller" { (call.caller) }
            td data-label="Outcome" { (outcome_badge(call.outcome)) @if let Some(why) = &call.why { span.why { (why) } } }
            td.number data-label="Duration" { (format_duration(call.duration)) }
            td.number data-label="Fuel" { @if let Some(usage) = usage { (format_amount(usage.fuel)) } @else { "–" } }
            td.number data-label="Memory" { @if let Some(usage) = usage { (format_size(usage.memory)) } @else { "–" } }
        }
    }
}

/// Renders the arguments and the result of a call.
fn excerpts(call: &CallNote) -> Markup {
    let shown = |name: &str, excerpt: Option<&TextExcerpt>| {
        html! {
            @if let Some(excerpt) = excerpt {
                h3 { (name) @if excerpt.is_truncated { " (the beginning)" } }
                pre tabindex="0" { (toolbay_model::text::escape_json(&excerpt.text)) }
            }
        }
    };
    html! {
        @if call.arguments.is_some() || call.result.is_some() {
            details data-key={ (format_time(call.at)) (call.duration.as_nanos()) (call.caller) } {
                summary { "Contents" }
                (shown("Arguments", call.arguments.as_ref()))
                (shown("Result", call.result.as_ref()))
            }
        }
    }
}
