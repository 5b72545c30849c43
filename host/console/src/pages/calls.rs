//! The page of the newest calls.

use std::sync::Arc;
use std::time::SystemTime;

use maud::{Markup, html};

use super::call_filters::filter_form;
use super::elements::{
    csrf_input, notice_element, outcome_badge, plugin_link, similar_notice, time_element, tool_link,
};
use super::layout::{NavigationItem, layout};
use crate::call_filter::CallFilter;
use crate::call_note::{CallNote, TextExcerpt};
use crate::formatting::{
    encode_query, format_amount, format_count, format_duration, format_size, format_time,
};
use crate::page_context::PageContext;
use crate::paths::PATH;
use crate::running_calls::RunningCall;
use crate::sessions::ConsoleSession;

/// Maximum number of calls on the page.
const MAX_CALLS_SHOWN: usize = 100;

/// Maximum number of running calls on the page.
const MAX_RUNNING_SHOWN: usize = 50;

/// Renders the running calls, and the calls that the filter selects.
pub(crate) fn calls(
    context: &PageContext,
    session: &ConsoleSession,
    filter: &CallFilter,
    notice: Option<&str>,
) -> Markup {
    let (stored, ended, lost) = {
        let history = context.activity.lock_history();
        let stored: Vec<Arc<CallNote>> = history.newest().cloned().collect();
        (stored, history.ended, history.lost)
    };
    let (matching, is_similar) = filter.select(stored.iter());
    let may_view_contents =
        |call: &CallNote| context.operations.may_use(&session.viewer, &call.tool);
    let export_path = |name: &str| format!("{PATH}/{name}?{}", filter.query());
    let body = html! {
        (notice_element(notice))
        div #running data-live { (running_calls(context, session)) }
        (filter_form(filter, stored.iter()))
        div #calls data-live {
            p.count {
                (format_count(usize::try_from(ended).unwrap_or(usize::MAX), "call")) " since " (context.activity.since())
                @if filter.is_empty() { "; these are the newest" }
                @else { "; " (format_count(matching.len(), "call")) @if matching.len() == 1 { " matches" } @else { " match" } " of the " (stored.len()) " that are stored" }
                @if matching.len() > MAX_CALLS_SHOWN { ", of which " (MAX_CALLS_SHOWN) " are shown" }
                @if lost > 0 { " (" (format_count(usize::try_from(lost).unwrap_or(usize::MAX), "call")) " came too fast to be recorded)" }
            }
            (similar_notice(is_similar))
            @if matching.is_empty() {
                p.empty { @if ended == 0 { "No call yet. Calls of clients appear here after a second." } @else { "None of the newest calls matches." } }
            } @else {
                table.stack.calls {
                    thead { tr { th { "Time (UTC)" } th { "Tool" } th { "Caller" } th { "Outcome" } th.number { "Duration" } th.number { "Fuel" } th.number { "Memory" } } }
                    tbody { @for call in matching.iter().take(MAX_CALLS_SHOWN) { (row(call, may_view_contents(call))) } }
                }
                p.export { "Export all " (matching.len()) ": " a href=(export_path("calls.csv")) download { "CSV" } " " a href=(export_path("calls.jsonl")) download { "JSON Lines" } }
            }
        }
    };
    layout(session, NavigationItem::Calls, "Calls", true, &body)
}

/// Renders the calls that have not ended, with a button that stops each.
fn running_calls(context: &PageContext, session: &ConsoleSession) -> Markup {
    let (running, count) = context.activity.lock_running().oldest(MAX_RUNNING_SHOWN);
    let now = SystemTime::now();
    let age = |call: &RunningCall| now.duration_since(call.started_at).unwrap_or_default();
    html! {
        @if !running.is_empty() {
            section aria-labelledby="running-calls" {
                h2 #running-calls { (format_count(count, "running call")) }
                table.stack.calls {
                    thead { tr { th { "Since" } th { "Tool" } th { "Caller" } th.number { "Age" } th { "Action" } } }
                    tbody {
                        @for call in &running {
                            tr {
                                td data-label="Since" { (call_link(call.id, call.started_at)) }
                                th scope="row" {
                                    @match &call.plugin {
                                        Some(plugin) => { (tool_link(&call.tool)) " " span.of { "of " (plugin_link(plugin)) } }
                                        None => { (call.tool) }
                                    }
                                }
                                td data-label="Caller" { (call.caller) }
                                td.number data-label="Age" { (format_duration(age(call))) }
                                td data-label="Action" { @if context.operations.may_use(&session.viewer, &call.tool) { (stop_button(session, call)) } }
                            }
                        }
                    }
                }
                @if count > running.len() { p.hint { "Only the oldest are shown." } }
            }
        }
    }
}

fn stop_button(session: &ConsoleSession, call: &RunningCall) -> Markup {
    html! {
        form method="post" action={ (PATH) "/calls" } {
            (csrf_input(session))
            input type="hidden" name="id" value=(call.id);
            button type="submit" aria-label={ "Stop the call of " (call.tool) " by " (call.caller) } { "Stop" }
        }
    }
}

/// Renders a time that leads to the page of the call.
fn call_link(id: u64, at: SystemTime) -> Markup {
    let query = encode_query(&[("id", &id.to_string())]);
    html! { a href={ (PATH) "/call?" (query) } aria-label={ "Call " (id) ", at " (format_time(at)) } { (time_element(at)) } }
}

fn row(call: &CallNote, shows_contents: bool) -> Markup {
    let usage = call.usage.as_ref();
    html! {
        tr {
            td data-label="Time" { (call_link(call.id, call.at)) }
            th scope="row" {
                @match &call.plugin {
                    Some(plugin) => { (tool_link(&call.tool)) " " span.of { "of " (plugin_link(plugin)) } }
                    None => { (call.tool) }
                }
                @if shows_contents { (excerpts(call)) }
            }
            td data-label="Caller" { (call.caller) }
            td data-label="Outcome" { (outcome_badge(call.outcome)) @if let Some(why) = &call.failure_reason { span.why { (why) } } }
            td.number data-label="Duration" { (format_duration(call.duration)) }
            td.number data-label="Fuel" { @if let Some(usage) = usage { (format_amount(usage.fuel)) } @else { "–" } }
            td.number data-label="Memory" { @if let Some(usage) = usage { (format_size(usage.memory)) } @else { "–" } }
        }
    }
}

/// Renders the arguments and the result of a call.
fn excerpts(call: &CallNote) -> Markup {
    let excerpt_element = |name: &str, excerpt: Option<&TextExcerpt>| {
        html! {
            @if let Some(excerpt) = excerpt {
                p { strong { (name) @if excerpt.is_truncated { " (the beginning)" } } }
                pre tabindex="0" { (toolbay_model::text::escape_json(&excerpt.text)) }
            }
        }
    };
    html! {
        @if call.arguments.is_some() || call.result.is_some() {
            details data-key={ (format_time(call.at)) (call.duration.as_nanos()) (call.caller) } {
                summary { "Contents" }
                (excerpt_element("Arguments", call.arguments.as_ref()))
                (excerpt_element("Result", call.result.as_ref()))
            }
        }
    }
}
