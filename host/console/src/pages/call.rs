//! The page of one call.

use std::time::SystemTime;

use maud::{Markup, html};

use super::elements::{outcome_badge, plugin_link, time_element, tool_link};
use super::layout::{NavigationItem, layout, unknown_call};
use crate::call_note::{CallNote, TextExcerpt};
use crate::call_trail::BoundedTexts;
use crate::formatting::{encode_query, format_amount, format_duration, format_size};
use crate::page_context::PageContext;
use crate::paths::PATH;
use crate::running_calls::RunningCall;
use crate::sessions::ConsoleSession;

/// Renders the call with this number. Returns `None` if it is not stored.
pub(crate) fn call(context: &PageContext, session: &ConsoleSession, id: u64) -> (bool, Markup) {
    let ended = context.activity.lock_history().find(id);
    if let Some(call) = ended {
        let shows_contents = context.operations.may_use(&session.viewer, &call.tool);
        return (true, ended_call(session, &call, shows_contents));
    }
    let running = context.activity.lock_running().get(id).cloned();
    match running {
        Some(call) => (true, running_call(session, &call)),
        None => (false, unknown_call(session)),
    }
}

fn ended_call(session: &ConsoleSession, call: &CallNote, shows_contents: bool) -> Markup {
    let body = html! {
        div #call data-live {
            p.lead { (outcome_badge(call.outcome)) @if let Some(why) = &call.failure_reason { " " (why) } }
            (facts(&call.tool, call.plugin.as_deref(), &call.caller, &html! {
                div { dt { "Ended" } dd { (time_element(call.at)) } }
                div { dt { "Duration" } dd { (format_duration(call.duration)) } }
                @if let Some(usage) = &call.usage {
                    div { dt { "Fuel" } dd { (format_amount(usage.fuel)) } }
                    div { dt { "Memory" } dd { (format_size(usage.memory)) } }
                }
                div { dt { "Approval" } dd { (call.approval.as_deref().unwrap_or("not needed, or not asked for")) } }
                @if let Some(trace) = &call.trace_id { div { dt { "Trace" } dd { code.break { (trace) } } } }
            }))
            @if shows_contents { (contents(call)) } @else {
                p.empty { "Your token may not call this tool, so what the call contained is not shown." }
            }
        }
    };
    layout(
        session,
        NavigationItem::Calls,
        &title(&call.tool, call.id),
        false,
        &body,
    )
}

fn running_call(session: &ConsoleSession, call: &RunningCall) -> Markup {
    let age = SystemTime::now()
        .duration_since(call.started_at)
        .unwrap_or_default();
    let body = html! {
        div #call data-live {
            p.lead { span.badge.mild { "running" } " It can be stopped on the page " a href={ (PATH) "/calls" } { "Calls" } "." }
            (facts(&call.tool, call.plugin.as_deref(), &call.caller, &html! {
                div { dt { "Since" } dd { (time_element(call.started_at)) } }
                div { dt { "Age" } dd { (format_duration(age)) } }
            }))
        }
    };
    layout(
        session,
        NavigationItem::Calls,
        &title(&call.tool, call.id),
        true,
        &body,
    )
}

fn title(tool: &str, id: u64) -> String {
    format!("Call {id} of {tool}")
}

fn facts(tool: &str, plugin: Option<&str>, caller: &str, more: &Markup) -> Markup {
    let others =
        |name: &str, value: &str| format!("{PATH}/calls?{}", encode_query(&[(name, value)]));
    html! {
        dl.facts {
            div { dt { "Tool" } dd { @if plugin.is_some() { (tool_link(tool)) } @else { (tool) } } }
            @if let Some(plugin) = plugin { div { dt { "Plugin" } dd { (plugin_link(plugin)) } } }
            div { dt { "Caller" } dd { a href=(others("caller", caller)) { (caller) } } }
            (more)
        }
    }
}

/// Renders the arguments, the result, the log messages and the denials.
fn contents(call: &CallNote) -> Markup {
    let trail = call.trail.entries();
    html! {
        (excerpt("arguments", "Arguments", call.arguments.as_ref()))
        (excerpt("result", "Result", call.result.as_ref()))
        @if call.arguments.is_none() && call.result.is_none() {
            p.hint { "Arguments and results are stored only with " code { "console.contents = true" } "." }
        }
        (texts("denials", "Denials", "Nothing was denied to it.", &trail.denials))
        (texts("messages", "Log messages of the plugin", "It wrote none.", &trail.messages))
    }
}

fn excerpt(id: &str, name: &str, excerpt: Option<&TextExcerpt>) -> Markup {
    html! {
        @if let Some(excerpt) = excerpt {
            section aria-labelledby=(id) {
                h2 id=(id) { (name) @if excerpt.is_truncated { " (the beginning)" } }
                pre tabindex="0" { (toolbay_model::text::escape_json(&excerpt.text)) }
            }
        }
    }
}

fn texts(id: &str, name: &str, none: &str, texts: &BoundedTexts) -> Markup {
    html! {
        section aria-labelledby=(id) {
            h2 id=(id) { (name) }
            @if texts.texts.is_empty() { p.hint { (none) } }
            @else { ol.log { @for text in &texts.texts { li { (text) } } } }
            @if texts.dropped > 0 { p.count { "and " (texts.dropped) " more, which are not stored" } }
        }
    }
}
