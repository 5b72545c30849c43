//! The page of a plugin: its status, its grant in plain language, its limits, and the items that it
//! offers.

use maud::{Markup, html};

use super::elements::{
    csrf_input, held_link, notice_element, plugin_row_badge, time_element, tool_rows,
};
use super::grant_section::{grant_proposal, grant_text};
use super::layout::{NavigationItem, layout};
use crate::formatting::{encode_query, first_sentence, format_amount, format_count, format_size};
use crate::page_context::PageContext;
use crate::paths::PATH;
use crate::server_data::{
    LimitRow, LimitSource, OfferRow, PluginDetail, PluginRow, PluginStatus, UsageSummary,
};
use crate::sessions::ConsoleSession;

/// Maximum number of problems, of tools, and of items of each other kind, on the page.
const MAX_ITEMS_SHOWN: usize = 200;

/// Renders a plugin.
pub(crate) fn plugin(
    context: &PageContext,
    session: &ConsoleSession,
    detail: &PluginDetail,
    notice: Option<&str>,
) -> Markup {
    let row = &detail.row;
    let is_served = matches!(row.status, PluginStatus::Ready | PluginStatus::Suspended);
    let body = html! {
        (notice_element(notice))
        div #plugin data-live {
            p.lead { (plugin_row_badge(row)) @if let Some(about) = &row.purpose { " " (about) } }
            @if !row.problems.is_empty() {
                section.problems.mild[is_served || row.is_held] aria-labelledby="problems" {
                    h2 #problems { (heading(row)) }
                    ul { @for problem in row.problems.iter().take(MAX_ITEMS_SHOWN) { li { (problem) } } }
                    (more_items(row.problems.len()))
                    @if row.is_held { p { (held_link(row)) } }
                }
            }
            @if let Some(approval) = &detail.approval {
                p.hint {
                    "The version in service was approved in the console by " (approval.by) " at " (time_element(approval.at)) ". "
                    code { "toolbay.lock" } " does not have it; " code { "toolbay lock " (row.id) } " writes it there."
                }
            }
            (activity_figures(context, &row.id))
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
                @if let Some(grant) = &detail.grant { (grant_text(grant)) }
            }
            @if let Some(proposal) = &detail.proposal {
                section aria-labelledby="proposal" {
                    h2 #proposal { "Proposed grant" }
                    (grant_proposal(proposal))
                }
            }
            @if !detail.disabled.is_empty() {
                section aria-labelledby="disabled" {
                    h2 #disabled { "Disabled after crashes" }
                    ul.plain {
                        @for (caller, left) in detail.disabled.iter().take(MAX_ITEMS_SHOWN) {
                            li { "for " (caller) ", for another " (left.as_secs() + 1) " s" }
                        }
                    }
                    (more_items(detail.disabled.len()))
                }
            }
            @if let Some(usage) = &detail.usage { (usage_section(&row.id, usage)) }
        }
        @if detail.can_suspend { (suspension_buttons(session, detail)) }
        @if !detail.tools.is_empty() {
            section aria-labelledby="tools" {
                h2 #tools { "Tools" }
                (tool_rows(detail.tools.get(..MAX_ITEMS_SHOWN).unwrap_or(&detail.tools), false))
                @if detail.tools.len() > MAX_ITEMS_SHOWN { p.count { "and " (detail.tools.len() - MAX_ITEMS_SHOWN) " more: see Tools" } }
            }
        }
        @for (what, rows) in &detail.offers { (offer_section(what, rows)) }
        (limit_section(&detail.limits))
        (file_section(detail))
    };
    layout(session, NavigationItem::Plugins, &row.id, true, &body)
}

/// Renders the number of items that are not shown.
fn more_items(number: usize) -> Markup {
    html! { @if number > MAX_ITEMS_SHOWN { p.count { "and " (number - MAX_ITEMS_SHOWN) " more" } } }
}

/// Renders the numbers of calls, failures and denials, with links to them.
fn activity_figures(context: &PageContext, id: &str) -> Markup {
    let totals = context.activity.lock_history().plugin_totals(id);
    let denied = context.activity.lock_denials().count_of(id);
    let calls = encode_query(&[("plugin", id)]);
    let failures = encode_query(&[("plugin", id), ("failed", "yes")]);
    let figure = |name: &str, path: String, number: u64| {
        html! { div { dt { (name) } dd { a href={ (PATH) (path) } aria-label={ (name) ": " (number) } { (format_amount(number)) } } } }
    };
    html! {
        dl.figures {
            (figure("Calls", format!("/calls?{calls}"), totals.calls))
            (figure("Failures", format!("/calls?{failures}"), totals.failed))
            (figure("Denials", format!("/denials?{calls}"), denied))
        }
    }
}

/// Renders the maximum usage of the recent calls, compared with the limits.
fn usage_section(id: &str, usage: &UsageSummary) -> Markup {
    html! {
        section aria-labelledby="usage" {
            h2 #usage { "Usage of the newest " (format_count(usage.calls, "call")) }
            table.stack.usage {
                thead { tr { th { "Limit" } th.number { "Maximum usage" } th.number { "Limit of a call" } th { "Share" } } }
                tbody {
                    @for row in &usage.rows {
                        tr {
                            th scope="row" { code { (row.key) } }
                            td.number data-label="Maximum usage" { (row.used) }
                            td.number data-label="Limit of a call" { (row.limit) }
                            td data-label="Share" {
                                meter min="0" max="100" high="80" value=(row.percent.min(100)) aria-label={ "Usage of " (row.key) } {}
                                " " (row.percent) " %"
                            }
                        }
                    }
                }
            }
            p.hint {
                "Limits of twice the maximum usage, for " code { (id) ".toml" } ":"
                @if usage.stopped > 0 { " (a limit stopped " (format_count(usage.stopped, "call")) ", which would have used more)" }
            }
            pre tabindex="0" { (usage.suggestion) }
        }
    }
}

fn offer_section(kind: &str, rows: &[OfferRow]) -> Markup {
    html! {
        @if !rows.is_empty() {
            section {
                h2 { (kind) }
                ul.rows {
                    @for row in rows.iter().take(MAX_ITEMS_SHOWN) {
                        li {
                            div.name { code { (row.name) } @if let Some(title) = &row.title { span.of { (title) } } }
                            @if let Some(description) = &row.description { p { (first_sentence(description)) } }
                        }
                    }
                }
                (more_items(rows.len()))
            }
        }
    }
}

fn limit_section(limits: &[LimitRow]) -> Markup {
    html! {
        @if !limits.is_empty() {
            section aria-labelledby="limits" {
                h2 #limits { "Limits" }
                dl.facts.limits {
                    @for row in limits {
                        div {
                            dt { (row.key) }
                            dd {
                                (row.value)
                                @match row.source {
                                    LimitSource::BuiltIn => {}
                                    LimitSource::Server => { " " span.badge.plain { "server default" } }
                                    LimitSource::Grant => { " " span.badge.plain { "its grant" } }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Renders what the plugin was loaded from.
fn file_section(detail: &PluginDetail) -> Markup {
    html! {
        @if detail.file.is_some() || detail.loaded_at.is_some() || detail.digest.is_some() {
            section aria-labelledby="file" {
                h2 #file { "File" }
                dl.facts.wide {
                    @if let Some(file) = &detail.file {
                        div {
                            dt { "Path" }
                            dd { code.break { (file.path) } @if let Some(target) = &file.link_target { " → " code.break { (target) } } }
                        }
                        div { dt { "Size" } dd { (format_size(file.size)) } }
                        @if let Some(at) = file.modified_at { div { dt { "Changed" } dd { (time_element(at)) } } }
                    }
                    @if let Some(at) = detail.loaded_at { div { dt { "Loaded" } dd { (time_element(at)) } } }
                    @if !detail.toolchain.is_empty() { div { dt { "Made with, as the file states" } dd { (detail.toolchain.join(", ")) } } }
                    @if let Some(digest) = &detail.digest {
                        div {
                            dt { "SHA-256 of the component in service" }
                            dd {
                                code.break { (digest) }
                                " " button.quiet type="button" data-copy=(digest) hidden { "Copy" }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn heading(row: &PluginRow) -> &'static str {
    match row.status {
        PluginStatus::Refused if row.is_held => "Held",
        _ if row.is_held => "Held; an approved version stays in service",
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
