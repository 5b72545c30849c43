//! Elements shared by several pages.

use std::time::SystemTime;

use maud::{Markup, html};

use crate::formatting::{encode_query, first_sentence, format_recent_time, format_time};
use crate::paths::{CSRF_FIELD, PATH};
use crate::server_data::{PluginRow, PluginStatus, ToolRow};
use crate::sessions::ConsoleSession;

/// Renders the hidden field with the CSRF token of the session.
pub(super) fn csrf_input(session: &ConsoleSession) -> Markup {
    html! { input type="hidden" name=(CSRF_FIELD) value=(session.csrf); }
}

/// Maximum number of problems of a plugin in a list.
const MAX_PROBLEMS_SHOWN: usize = 3;

/// Renders a time in UTC, with the date unless it is today.
pub(super) fn time_element(moment: SystemTime) -> Markup {
    let full_time = format_time(moment);
    let shown = format_recent_time(moment, SystemTime::now());
    html! { time datetime=(full_time) title=(full_time) { (shown) } }
}

/// Renders the outcome of a call.
pub(super) fn outcome_badge(outcome: &str) -> Markup {
    let kind = match outcome {
        "ok" => "good",
        "input-required" | "cancelled" | "not-approved" => "mild",
        _ => "bad",
    };
    html! { span.badge.(kind) { (outcome) } }
}

/// Renders the status of a plugin.
pub(super) fn plugin_status_badge(status: PluginStatus) -> Markup {
    let (word, kind) = match status {
        PluginStatus::Loading => ("loading", "mild"),
        PluginStatus::Ready => ("ready", "good"),
        PluginStatus::Stale => ("stale", "bad"),
        PluginStatus::Refused => ("refused", "bad"),
        PluginStatus::Suspended => ("disabled", "mild"),
    };
    html! { span.badge.(kind) { (word) } }
}

/// Renders the status of a plugin in a list. A plugin that is in service with problems is not good.
pub(super) fn plugin_row_badge(row: &PluginRow) -> Markup {
    if row.is_held {
        return html! { span.badge.mild { "held" } };
    }
    if row.status == PluginStatus::Ready && !row.problems.is_empty() {
        return html! { span.badge.mild { "ready, with warnings" } };
    }
    plugin_status_badge(row.status)
}

/// Renders the first problems of a plugin, and the number of the others.
pub(super) fn problem_lines(row: &PluginRow) -> Markup {
    let shown = row.problems.iter().take(MAX_PROBLEMS_SHOWN);
    let more = row.problems.len().saturating_sub(MAX_PROBLEMS_SHOWN);
    let is_warning = matches!(row.status, PluginStatus::Ready | PluginStatus::Suspended);
    html! {
        @for problem in shown { p.problem.mild[is_warning] { (problem) } }
        @if more > 0 { p { a href=(plugin_path(&row.id)) { "and " (more) " more" } } }
        @if row.is_held { p { (held_link(row)) } }
    }
}

/// Returns the address of the page of a plugin.
fn plugin_path(id: &str) -> String {
    format!("{PATH}/plugin?{}", encode_query(&[("id", id)]))
}

/// Renders a link to the held version of a plugin.
pub(super) fn held_link(row: &PluginRow) -> Markup {
    let path = format!("{PATH}/held?{}", encode_query(&[("id", &row.id)]));
    html! { a href=(path) { "Review the held version" } }
}

/// Renders a link to a plugin.
pub(super) fn plugin_link(id: &str) -> Markup {
    html! { a href=(plugin_path(id)) { (id) } }
}

/// Renders a link to a tool.
pub(super) fn tool_link(name: &str) -> Markup {
    html! { a href={ (PATH) "/tool?" (encode_query(&[("name", name)])) } { (name) } }
}

/// Renders a notice that the results have words that are only similar to those of the search.
pub(super) fn similar_notice(is_similar: bool) -> Markup {
    html! { @if is_similar { p.hint { "Nothing contains these words. The results have similar words." } } }
}

/// Renders a search form with additional filters.
pub(super) fn search_form(path: &str, label: &str, value: &str, filters: &Markup) -> Markup {
    html! {
        form.search role="search" method="get" action={ (PATH) (path) } {
            label { span { (label) } input type="search" name="q" value=(value) autocomplete="off" spellcheck="false" data-search; }
            (filters)
            button type="submit" { "Search" }
        }
    }
}

/// Renders a list of tools. If `with_plugin` is set, each with its plugin.
pub(super) fn tool_rows(rows: &[ToolRow], with_plugin: bool) -> Markup {
    html! {
        ul.rows {
            @for row in rows {
                li {
                    div.name {
                        (tool_link(&row.name))
                        @if with_plugin { span.of { "of " (plugin_link(&row.plugin)) } }
                        @if let Some(asks) = &row.approval { span.badge.mild { "asks a person, " (asks) } }
                    }
                    @if let Some(description) = &row.description { p { (first_sentence(description)) } }
                }
            }
        }
    }
}

/// Renders the result of an action.
pub(super) fn notice_element(notice: Option<&str>) -> Markup {
    html! { @if let Some(done) = notice { p.told role="status" { (done) } } }
}
