//! Elements shared by several pages.

use std::time::SystemTime;

use maud::{Markup, html};

use crate::formatting::{encode_query, first_sentence, format_time, format_time_of_day};
use crate::paths::{CSRF_FIELD, PATH};
use crate::server_data::{PluginStatus, ToolRow};
use crate::sessions::ConsoleSession;

/// Renders the hidden field with the CSRF token of the session.
pub(super) fn csrf_input(session: &ConsoleSession) -> Markup {
    html! { input type="hidden" name=(CSRF_FIELD) value=(session.csrf); }
}

/// Renders a time, displayed as the time of day.
pub(super) fn time_element(moment: SystemTime) -> Markup {
    let full_time = format_time(moment);
    html! { time datetime=(full_time) title=(full_time) { (format_time_of_day(moment)) } }
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

/// Renders a link to a plugin.
pub(super) fn plugin_link(id: &str) -> Markup {
    html! { a href={ (PATH) "/plugin?" (encode_query(&[("id", id)])) } { (id) } }
}

/// Renders a link to a tool.
pub(super) fn tool_link(name: &str) -> Markup {
    html! { a href={ (PATH) "/tool?" (encode_query(&[("name", name)])) } { (name) } }
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
