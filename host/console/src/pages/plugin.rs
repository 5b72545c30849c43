//! The page of a plugin: its status, its grant in plain language, its limits, and the items that it
//! offers.

use maud::{Markup, html};

use super::layout::{NavigationItem, layout};
use super::parts::{csrf, status, told, tool_rows};
use crate::data::{PluginDetail, PluginStatus};
use crate::paths::PATH;
use crate::sessions::ConsoleSession;
use crate::shown::count;

/// Maximum number of tools, and of names of each other kind, on the page.
const MOST: usize = 200;

/// Renders a plugin.
pub(crate) fn plugin(session: &ConsoleSession, detail: &PluginDetail, done: Option<&str>) -> Markup {
    let row = &detail.row;
    let served = matches!(row.status, PluginStatus::Ready | PluginStatus::Resting);
    let body = html! {
        (told(done))
        div #plugin data-live {
            p.lead { (status(row.status)) @if let Some(about) = &row.about { " " (about) } }
            @if !row.problems.is_empty() {
                section.problems.mild[served] aria-labelledby="problems" {
                    h2 #problems { (heading(row.status)) }
                    ul { @for problem in &row.problems { li { (problem) } } }
                }
            }
            section aria-labelledby="grant" {
                h2 #grant { "What it may use" }
                @if row.permissions.is_empty() {
                    p { "Nothing outside its own memory: no files, no variables and no network." }
                } @else {
                    ul.plain { @for words in &row.permissions { li { (words) } } }
                }
                @if !detail.terms.is_empty() {
                    h3 { "What else its grant says" }
                    ul.plain { @for words in &detail.terms { li { (words) } } }
                }
                p.hint { "The grant is the file " code { (row.id) ".toml" } " in the plugin folder. Nothing here can change it." }
            }
            @if !detail.disabled.is_empty() {
                section aria-labelledby="disabled" {
                    h2 #disabled { "Disabled after crashes" }
                    ul.plain {
                        @for (caller, left) in &detail.disabled {
                            li { "for " (caller) ", for another " (left.as_secs() + 1) " s" }
                        }
                    }
                }
            }
        }
        @if detail.can_rest { (rest(session, detail)) }
        @if !detail.tools.is_empty() {
            section aria-labelledby="tools" {
                h2 #tools { "Tools" }
                (tool_rows(detail.tools.get(..MOST).unwrap_or(&detail.tools), false))
                @if detail.tools.len() > MOST { p.count { "and " (detail.tools.len() - MOST) " more: see Tools" } }
            }
        }
        @for (what, names) in &detail.offers {
            @if !names.is_empty() {
                section {
                    h2 { (what) }
                    ul.plain { @for name in names.iter().take(MOST) { li { code { (name) } } } }
                    @if names.len() > MOST { p.count { "and " (names.len() - MOST) " more" } }
                }
            }
        }
        @if !detail.limits.is_empty() {
            section aria-labelledby="limits" {
                h2 #limits { "Limits of a call" }
                dl.facts.limits {
                    @for (key, value, own) in &detail.limits {
                        div { dt { (key) } dd { (value) @if *own { span.badge.plain { "set" } } } }
                    }
                }
            }
        }
        @if let Some(digest) = &detail.digest { p.hint { "SHA-256 of the component: " code.break { (digest) } } }
    };
    layout(session, NavigationItem::Plugins, &row.id, true, &body)
}

fn heading(status: PluginStatus) -> &'static str {
    match status {
        PluginStatus::Refused => "Why it is refused",
        PluginStatus::Stale => "Why the current file is refused; the previous version is in service",
        PluginStatus::Loading | PluginStatus::Ready | PluginStatus::Resting => "Warnings",
    }
}

/// Renders the buttons that suspend and resume the plugin.
fn rest(session: &ConsoleSession, detail: &PluginDetail) -> Markup {
    let rests = detail.row.status == PluginStatus::Resting;
    let disabled = detail.disabled.len();
    html! {
        section aria-labelledby="rest" {
            h2 #rest { "Rest and wake" }
            div.actions {
                @if !rests {
                    form method="post" action={ (PATH) "/plugin" } {
                        (csrf(session))
                        input type="hidden" name="id" value=(detail.row.id);
                        input type="hidden" name="rests" value="yes";
                        button.quiet type="submit" { "Put it to rest" }
                    }
                }
                @if rests || disabled > 0 {
                    form method="post" action={ (PATH) "/plugin" } {
                        (csrf(session))
                        input type="hidden" name="id" value=(detail.row.id);
                        input type="hidden" name="rests" value="no";
                        button type="submit" { "Wake it" @if disabled > 0 { " for " (count(disabled, "caller")) } }
                    }
                }
            }
            p.hint {
                @if rests { "It rejects all calls. It serves them again when you wake it, or when it is loaded again." }
                @else { "A plugin at rest stays listed and rejects all calls, until you wake it or it is loaded again. Running calls go on." }
            }
        }
    }
}
