//! Small parts that several pages have.

use std::time::SystemTime;

use maud::{Markup, html};

use crate::data::{PluginStatus, ToolRow};
use crate::paths::{CSRF, PATH};
use crate::sessions::ConsoleSession;
use crate::shown::{clock, moment, query, summary};

/// The field that shows that a form belongs to a session.
pub(super) fn csrf(session: &ConsoleSession) -> Markup {
    html! { input type="hidden" name=(CSRF) value=(session.csrf); }
}

/// A moment, by its time of day.
pub(super) fn at(moment_: SystemTime) -> Markup {
    let whole = moment(moment_);
    html! { time datetime=(whole) title=(whole) { (clock(moment_)) } }
}

/// How a call ended.
pub(super) fn outcome(word: &str) -> Markup {
    let kind = match word {
        "ok" => "good",
        "asked" | "cancelled" | "not-approved" => "mild",
        _ => "bad",
    };
    html! { span.badge.(kind) { (word) } }
}

/// The status of a plugin.
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

/// A link to a plugin.
pub(super) fn to_plugin(id: &str) -> Markup {
    html! { a href={ (PATH) "/plugin?" (query(&[("id", id)])) } { (id) } }
}

/// A link to a tool.
pub(super) fn to_tool(name: &str) -> Markup {
    html! { a href={ (PATH) "/tool?" (query(&[("name", name)])) } { (name) } }
}

/// A field to search with, and what else narrows a list.
pub(super) fn search(path: &str, label: &str, value: &str, more: &Markup) -> Markup {
    html! {
        form.search role="search" method="get" action={ (PATH) (path) } {
            label { span { (label) } input type="search" name="q" value=(value) autocomplete="off" spellcheck="false" data-search; }
            (more)
            button type="submit" { "Search" }
        }
    }
}

/// Tools, with their plugins if they are of several.
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

/// Says what was done.
pub(super) fn told(done: Option<&str>) -> Markup {
    html! { @if let Some(done) = done { p.told role="status" { (done) } } }
}
