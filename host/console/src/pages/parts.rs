//! Elements shared by several pages.

use std::time::SystemTime;

use maud::{Markup, html};

use crate::data::{PluginStatus, ToolRow};
use crate::paths::{CSRF, PATH};
use crate::sessions::ConsoleSession;
use crate::shown::{clock, moment, query, summary};

/// Renders the hidden field with the CSRF token of the session.
pub(super) fn csrf(session: &ConsoleSession) -> Markup {
    html! { input type="hidden" name=(CSRF) value=(session.csrf); }
}

/// Renders a time, displayed as the time of day.
pub(super) fn at(moment_: SystemTime) -> Markup {
    let whole = moment(moment_);
    html! { time datetime=(whole) title=(whole) { (clock(moment_)) } }
}

/// Renders the outcome of a call.
pub(super) fn outcome(word: &str) -> Markup {
    let kind = match word {
        "ok" => "good",
        "asked" | "cancelled" | "not-approved" => "mild",
        _ => "bad",
    };
    html! { span.badge.(kind) { (word) } }
}

/// Renders the status of a plugin.
pub(super) fn status(status: PluginStatus) -> Markup {
    let (word, kind) = match status {
        PluginStatus::Loading => ("loading", "mild"),
        PluginStatus::Ready => ("ready", "good"),
        PluginStatus::Stale => ("stale", "bad"),
        PluginStatus::Refused => ("refused", "bad"),
        PluginStatus::Resting => ("resting", "mild"),
    };
    html! { span.badge.(kind) { (word) } }
}

/// Renders a link to a plugin.
pub(super) fn to_plugin(id: &str) -> Markup {
    html! { a href={ (PATH) "/plugin?" (query(&[("id", id)])) } { (id) } }
}

/// Renders a link to a tool.
pub(super) fn to_tool(name: &str) -> Markup {
    html! { a href={ (PATH) "/tool?" (query(&[("name", name)])) } { (name) } }
}

/// Renders a search form with additional filters.
pub(super) fn search(path: &str, label: &str, value: &str, more: &Markup) -> Markup {
    html! {
        form.search role="search" method="get" action={ (PATH) (path) } {
            label { span { (label) } input type="search" name="q" value=(value) autocomplete="off" spellcheck="false" data-search; }
            (more)
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
                        (to_tool(&row.name))
                        @if with_plugin { span.of { "of " (to_plugin(&row.plugin)) } }
                        @if let Some(asks) = &row.asks { span.badge.mild { "asks a person, " (asks) } }
                    }
                    @if let Some(description) = &row.description { p { (summary(description)) } }
                }
            }
        }
    }
}

/// Renders the result of an action.
pub(super) fn told(done: Option<&str>) -> Markup {
    html! { @if let Some(done) = done { p.told role="status" { (done) } } }
}
