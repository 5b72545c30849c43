//! The page of a plugin: its status, its grant in plain language, its limits, and the items that it
//! offers.

use maud::{Markup, html};

use super::elements::{csrf_input, notice_element, plugin_status_badge, tool_rows};
use super::layout::{NavigationItem, layout};
use crate::formatting::format_count;
use crate::paths::PATH;
use crate::server_data::{PluginDetail, PluginStatus};
use crate::sessions::ConsoleSession;

/// Maximum number of tools, and of names of each other kind, on the page.
const MAX_ITEMS_SHOWN: usize = 200;

/// Renders a plugin.
pub(crate) fn plugin(
    session: &ConsoleSession,
    detail: &PluginDetail,
    notice: Option<&str>,
) -> Markup {
    let row = &detail.row;
    let is_served = matches!(row.status, PluginStatus::Ready | PluginStatus::Suspended);
    let body = html! {
        (notice_element(notice))
        div #plugin data-live {
            p.lead { (plugin_status_badge(row.status)) @if let Some(about) = &row.purpose { " " (about) } }
            @if !row.problems.is_empty() {
                section.problems.mild[is_served] aria-labelledby="problems" {
                    h2 #problems { (heading(row.status)) }
                    ul { @for problem in &row.problems { li { (problem) } } }
                }
            }
            section aria-labelledby="grant" {
                h2 #grant { "Permissions" }
                @if row.permissions.is_empty() {
                    p { "Nothing outside its own memory: no files, no variables and no network." }
                } @else {
                    ul.plain { @for words in &row.permissions { li { (words) } } }
                }
                @if !detail.terms.is_empty() {
                    h3 { "Other grant settings" }
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
        @if detail.can_suspend { (suspension_buttons(session, detail)) }
        @if !detail.tools.is_empty() {
            section aria-labelledby="tools" {
                h2 #tools { "Tools" }
                (tool_rows(detail.tools.get(..MAX_ITEMS_SHOWN).unwrap_or(&detail.tools), false))
                @if detail.tools.len() > MAX_ITEMS_SHOWN { p.count { "and " (detail.tools.len() - MAX_ITEMS_SHOWN) " more: see Tools" } }
            }
        }
        @for (what, names) in &detail.offers {
            @if !names.is_empty() {
                section {
                    h2 { (what) }
                    ul.plain { @for name in names.iter().take(MAX_ITEMS_SHOWN) { li { code { (name) } } } }
                    @if names.len() > MAX_ITEMS_SHOWN { p.count { "and " (names.len() - MAX_ITEMS_SHOWN) " more" } }
                }
            }
        }
        @if !detail.limits.is_empty() {
            section aria-labelledby="limits" {
                h2 #limits { "Limits" }
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
        PluginStatus::Refused => "Reason for refusal",
        PluginStatus::Stale => {
            "The reason for refusing the current file; the previous version is in service"
        }
        PluginStatus::Loading | PluginStatus::Ready | PluginStatus::Suspended => "Warnings",
    }
}

/// Renders the buttons that suspend and resume the plugin.
fn suspension_buttons(session: &ConsoleSession, detail: &PluginDetail) -> Markup {
    let suspended = detail.row.status == PluginStatus::Suspended;
    let disabled = detail.disabled.len();
    html! {
        section aria-labelledby="enable" {
            h2 #enable { "Disable or enable" }
            div.actions {
                @if !suspended {
                    form method="post" action={ (PATH) "/plugin" } {
                        (csrf_input(session))
                        input type="hidden" name="id" value=(detail.row.id);
                        input type="hidden" name="disabled" value="yes";
                        button.quiet type="submit" { "Disable" }
                    }
                }
                @if suspended || disabled > 0 {
                    form method="post" action={ (PATH) "/plugin" } {
                        (csrf_input(session))
                        input type="hidden" name="id" value=(detail.row.id);
                        input type="hidden" name="disabled" value="no";
                        button type="submit" { "Enable" @if disabled > 0 { " for " (format_count(disabled, "caller")) } }
                    }
                }
            }
            p.hint {
                @if suspended { "It rejects all calls. It serves them again when you enable it, or when it is loaded again." }
                @else { "A disabled plugin stays listed and rejects all calls, until you enable it or it is loaded again. Running calls continue." }
            }
        }
    }
}
