//! The overview page: the state of the server, and the items that need attention.

use std::time::SystemTime;

use maud::{Markup, html};

use super::chart_section::chart_section;
use super::elements::{
    csrf_input, notice_element, plugin_link, plugin_row_badge, problem_lines, tool_link,
};
use super::layout::{NavigationItem, layout};
use crate::call_history::{CallHistory, ToolTotals};
use crate::chart_history::ChartRange;
use crate::formatting::{format_amount, format_count, format_duration, format_size};
use crate::page_context::PageContext;
use crate::paths::PATH;
use crate::server_data::{PluginRow, PluginStatus, ServerStatus};
use crate::sessions::ConsoleSession;

/// Maximum number of tools in the table.
const MAX_TOOLS_SHOWN: usize = 10;

/// Maximum number of plugins and notes that need attention.
const MAX_ATTENTION_ITEMS: usize = 20;

/// Renders the overview.
pub(crate) fn overview(
    context: &PageContext,
    session: &ConsoleSession,
    notice: Option<&str>,
    range: ChartRange,
) -> Markup {
    let server = context.operations.status();
    let plugins = context.operations.plugins();
    let now = SystemTime::now();
    let history = context.activity.lock_history().clone();
    let denied = context.activity.lock_denials().newest().count();
    // The console does not have questions that were asked before it was created.
    let waiting = context
        .activity
        .lock_approvals()
        .open_count(now)
        .max(context.operations.waiting_approvals().len());
    let body = html! {
        (notice_element(notice))
        div #now data-live {
            (figures(&server, &plugins, &history))
            (attention(&server, &plugins, denied, waiting))
            (chart_section(&history.charts, range, now))
            (tool_table(&history, context.activity.since()))
        }
        (server_facts(session, &server))
    };
    layout(session, NavigationItem::Overview, "Overview", true, &body)
}

fn figures(server: &ServerStatus, plugins: &[PluginRow], history: &CallHistory) -> Markup {
    let serving = plugins
        .iter()
        .filter(|row| matches!(row.status, PluginStatus::Ready | PluginStatus::Stale))
        .count();
    let (running, max_running) = server.running;
    let failed = if history.failed == 0 {
        "none failed".to_owned()
    } else {
        format!("{} failed", format_amount(history.failed))
    };
    let failed = match history.cancelled {
        0 => failed,
        cancelled => format!("{failed}, {} cancelled", format_amount(cancelled)),
    };
    html! {
        dl.figures {
            div {
                dt { "Calls" }
                dd { (format_amount(history.ended)) small { (failed) } }
            }
            div {
                dt { "Running" }
                dd { (running) small { "of " (max_running) (waiting_suffix(server.waiting)) } }
            }
            div {
                dt { "Plugins" }
                dd { (serving) small { (if server.is_loaded { "in service" } else { "in service, others are loading" }) } }
            }
            @for (number, what) in server.offered.iter().take(2) {
                div { dt { (capitalize(what)) } dd { (format_amount(*number as u64)) small { "offered" } } }
            }
            div {
                dt { "Memory" }
                dd { (format_size(server.memory.0)) small { "reserved of " (format_size(server.memory.1)) } }
            }
        }
    }
}

fn waiting_suffix(number: u64) -> String {
    if number == 0 {
        String::new()
    } else {
        format!(", {number} wait")
    }
}

fn capitalize(word: &str) -> String {
    let mut letters = word.chars();
    letters
        .next()
        .map(|first| first.to_uppercase().chain(letters).collect())
        .unwrap_or_default()
}

/// Renders the items that need attention.
fn attention(
    server: &ServerStatus,
    plugins: &[PluginRow],
    denied: usize,
    waiting: usize,
) -> Markup {
    let problem_plugins: Vec<&PluginRow> = plugins
        .iter()
        .filter(|row| {
            row.status != PluginStatus::Ready && row.status != PluginStatus::Loading
                || !row.problems.is_empty()
        })
        .collect();
    if problem_plugins.is_empty() && server.notes.is_empty() && denied == 0 && waiting == 0 {
        return html! {};
    }
    html! {
        section aria-labelledby="attention" {
            h2 #attention { "Attention needed" }
            ul.rows {
                @if waiting > 0 {
                    li { div.name { a href={ (PATH) "/approvals" } { (format_count(waiting, "call")) } span { @if waiting == 1 { " waits for approval" } @else { " wait for approval" } } } }
                }
                @if denied > 0 {
                    li { div.name { a href={ (PATH) "/denials" } { (format_count(denied, "use")) } span { " denied to plugins" } } }
                }
                @for row in problem_plugins.iter().take(MAX_ATTENTION_ITEMS) {
                    li {
                        div.name { (plugin_link(&row.id)) (plugin_row_badge(row)) }
                        (problem_lines(row))
                    }
                }
                @if problem_plugins.len() > MAX_ATTENTION_ITEMS {
                    li { a href={ (PATH) "/plugins" } { "and " (format_count(problem_plugins.len() - MAX_ATTENTION_ITEMS, "plugin")) " more" } }
                }
                @for note in server.notes.iter().take(MAX_ATTENTION_ITEMS) { li { p { (note) } } }
                @if server.notes.len() > MAX_ATTENTION_ITEMS { li { p { "and " (format_count(server.notes.len() - MAX_ATTENTION_ITEMS, "note")) " more" } } }
            }
        }
    }
}

/// Renders the tools with the most calls.
fn tool_table(history: &CallHistory, since: &str) -> Markup {
    let mut tools: Vec<(&String, &ToolTotals)> = history.tools.iter().collect();
    tools.sort_by_key(|(_, totals)| std::cmp::Reverse(totals.calls));
    html! {
        section aria-labelledby="by-tool" {
            h2 #by-tool { "Top tools" }
            @if tools.is_empty() {
                p.empty { "No tool has been called since " (since) "." }
            } @else {
                table.stack {
                    thead { tr { th { "Tool" } th.number { "Calls" } th.number { "Failed" } th.number { "Mean duration" } th.number { "Fuel" } th.number { "Peak memory" } } }
                    tbody {
                        @for (name, totals) in tools.iter().take(MAX_TOOLS_SHOWN) {
                            tr {
                                th scope="row" { (tool_link(name)) }
                                td.number data-label="Calls" { (format_amount(totals.calls)) }
                                td.number data-label="Failed" { (format_amount(totals.failed)) }
                                td.number data-label="Mean duration" { (format_duration(totals.mean_duration())) }
                                td.number data-label="Fuel" { (format_amount(totals.fuel)) }
                                td.number data-label="Peak memory" { (format_size(totals.max_memory)) }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn server_facts(session: &ConsoleSession, server: &ServerStatus) -> Markup {
    html! {
        section aria-labelledby="server" {
            h2 #server { "Server" }
            dl.facts {
                div { dt { "Version" } dd { (server.version) } }
                div { dt { "Plugin folder" } dd { code { (server.folder) } } }
                div { dt { "Audit log" } dd { (if server.has_audit_log { "on" } else { "off" }) } }
                div { dt { "Call contents" } dd { (if server.records_contents { "kept (console.contents)" } else { "not kept" }) } }
                div {
                    dt { "Compile cache" }
                    dd {
                        @if let Some(why) = &server.no_cache { (why) } @else {
                            form method="post" action={ (PATH) "/cache" } {
                                (csrf_input(session))
                                button.quiet type="submit" { "Clear compile cache" }
                            }
                        }
                    }
                }
            }
        }
    }
}
