//! The overview page: the state of the server, and the items that need attention.

use std::time::SystemTime;

use maud::{Markup, html};

use super::chart::{BarChart, words};
use super::layout::{NavigationItem, layout};
use super::parts::{csrf, status, to_plugin, to_tool, told};
use crate::data::{PluginRow, PluginStatus, ServerStatus};
use crate::desk::PageContext;
use crate::history::{CallHistory, ToolTotals};
use crate::paths::PATH;
use crate::series::SeriesBucket;
use crate::sessions::ConsoleSession;
use crate::shown::{amount, count, size, time};

/// Maximum number of tools in the table.
const TOOLS: usize = 10;

/// Maximum number of plugins and notes that need attention.
const PLUGINS: usize = 20;

/// Renders the overview.
pub(crate) fn overview(desk: &PageContext, session: &ConsoleSession, done: Option<&str>) -> Markup {
    let (server, plugins, now) = (desk.operations.status(), desk.operations.plugins(), SystemTime::now());
    let (history, denied) = (desk.watch.history().clone(), desk.watch.denials().newest().count());
    // The console does not have questions that were asked before it was created.
    let waiting = desk.watch.approvals().waiting(now).max(desk.operations.waiting().len());
    let body = html! {
        (told(done))
        div #now data-live {
            (figures(&server, &plugins, &history))
            (attention(&server, &plugins, denied, waiting))
            section aria-labelledby="charts" {
                h2 #charts { "The last 15 minutes" }
                (charts(&history.series.until(now)))
            }
            (by_tool(&history, desk.watch.since()))
        }
        (housekeeping(session, &server))
    };
    layout(session, NavigationItem::Overview, "Overview", true, &body)
}

fn figures(server: &ServerStatus, plugins: &[PluginRow], history: &CallHistory) -> Markup {
    let serving = plugins.iter().filter(|row| matches!(row.status, PluginStatus::Ready | PluginStatus::Stale)).count();
    let (running, most) = server.running;
    let failed =
        if history.failed == 0 { "none failed".to_owned() } else { format!("{} failed", amount(history.failed)) };
    html! {
        dl.figures {
            div {
                dt { "Calls" }
                dd { (amount(history.ended)) small { (failed) } }
            }
            div {
                dt { "Running" }
                dd { (running) small { "of " (most) (waiting(server.waiting)) } }
            }
            div {
                dt { "Plugins" }
                dd { (serving) small { (if server.complete { "in service" } else { "in service, others are loading" }) } }
            }
            @for (number, what) in server.offered.iter().take(2) {
                div { dt { (capital(what)) } dd { (amount(*number as u64)) small { "offered" } } }
            }
            div {
                dt { "Memory" }
                dd { (size(server.memory.0)) small { "reserved of " (size(server.memory.1)) } }
            }
        }
    }
}

fn waiting(number: u64) -> String {
    if number == 0 { String::new() } else { format!(", {number} wait") }
}

fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

/// Renders the items that need attention.
fn attention(server: &ServerStatus, plugins: &[PluginRow], denied: usize, waiting: usize) -> Markup {
    let wrong: Vec<&PluginRow> = plugins
        .iter()
        .filter(|row| {
            row.status != PluginStatus::Ready && row.status != PluginStatus::Loading || !row.problems.is_empty()
        })
        .collect();
    if wrong.is_empty() && server.notes.is_empty() && denied == 0 && waiting == 0 {
        return html! {};
    }
    html! {
        section aria-labelledby="attention" {
            h2 #attention { "Needs a look" }
            ul.rows {
                @if waiting > 0 {
                    li { div.name { a href={ (PATH) "/approvals" } { (count(waiting, "call")) } span { @if waiting == 1 { " waits for approval" } @else { " wait for approval" } } } }
                }
                @if denied > 0 {
                    li { div.name { a href={ (PATH) "/denied" } { (count(denied, "use")) } span { " denied to plugins" } } }
                }
                @for row in wrong.iter().take(PLUGINS) {
                    li {
                        div.name { (to_plugin(&row.id)) (status(row.status)) }
                        @for problem in row.problems.iter().take(3) { p { (problem) } }
                    }
                }
                @if wrong.len() > PLUGINS {
                    li { a href={ (PATH) "/plugins" } { "and " (count(wrong.len() - PLUGINS, "plugin")) " more" } }
                }
                @for note in server.notes.iter().take(PLUGINS) { li { p { (note) } } }
            }
        }
    }
}

/// Renders charts of the call statistics.
fn charts(steps: &[SeriesBucket]) -> Markup {
    #[expect(clippy::cast_precision_loss, reason = "charts show no more")]
    let of = |value: fn(&SeriesBucket) -> (u64, u64)| -> Vec<(f64, f64)> {
        steps.iter().map(value).map(|(value, failed)| (value as f64, failed as f64)).collect()
    };
    let most = |value: fn(&SeriesBucket) -> u64| steps.iter().map(value).max().unwrap_or_default();
    let (calls, failed) = (steps.iter().map(SeriesBucket::calls).sum(), steps.iter().map(|step| step.failed).sum());
    let longest = steps.iter().map(|step| step.longest).max().unwrap_or_default();
    let mean = steps.iter().map(SeriesBucket::mean).max().unwrap_or_default();
    let means: Vec<(f64, f64)> = steps.iter().map(|step| (step.mean().as_secs_f64(), 0.0)).collect();
    let fuel: u64 = steps.iter().map(|step| step.fuel).fold(0, u64::saturating_add);
    html! {
        div.charts {
            (BarChart {
                title: "Calls in 10 s",
                words: words(calls, failed),
                most: format!("at most {}", amount(most(SeriesBucket::calls))),
                steps: of(|step| (step.calls(), step.failed)),
            }.figure())
            (BarChart {
                title: "Mean time",
                words: format!("mean times of at most {}, and the longest call took {}", time(mean), time(longest)),
                most: format!("at most {}", time(mean)),
                steps: means,
            }.figure())
            (BarChart {
                title: "Fuel in 10 s",
                words: format!("{} fuel in the last 15 minutes", amount(fuel)),
                most: format!("at most {}", amount(most(|step| step.fuel))),
                steps: of(|step| (step.fuel, 0)),
            }.figure())
            (BarChart {
                title: "Most memory of a call",
                words: format!("at most {} of memory in a call", size(most(|step| step.memory))),
                most: format!("at most {}", size(most(|step| step.memory))),
                steps: of(|step| (step.memory, 0)),
            }.figure())
        }
        p.legend { span.key { "succeeded" } span.key.bad { "failed" } }
    }
}

/// Renders the tools with the most calls.
fn by_tool(history: &CallHistory, since: &str) -> Markup {
    let mut tools: Vec<(&String, &ToolTotals)> = history.tools.iter().collect();
    tools.sort_by_key(|(_, totals)| std::cmp::Reverse(totals.calls));
    html! {
        section aria-labelledby="by-tool" {
            h2 #by-tool { "Most called tools" }
            @if tools.is_empty() {
                p.empty { "No tool has been called since " (since) "." }
            } @else {
                table.stack {
                    thead { tr { th { "Tool" } th.number { "Calls" } th.number { "Failed" } th.number { "Mean time" } th.number { "Fuel" } th.number { "Most memory" } } }
                    tbody {
                        @for (name, totals) in tools.iter().take(TOOLS) {
                            tr {
                                th scope="row" { (to_tool(name)) }
                                td.number data-label="Calls" { (amount(totals.calls)) }
                                td.number data-label="Failed" { (amount(totals.failed)) }
                                td.number data-label="Mean time" { (time(totals.mean())) }
                                td.number data-label="Fuel" { (amount(totals.fuel)) }
                                td.number data-label="Most memory" { (size(totals.memory)) }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn housekeeping(session: &ConsoleSession, server: &ServerStatus) -> Markup {
    html! {
        section aria-labelledby="server" {
            h2 #server { "This server" }
            dl.facts {
                div { dt { "Version" } dd { (server.version) } }
                div { dt { "Plugin folder" } dd { code { (server.folder) } } }
                div { dt { "Audit log" } dd { (if server.audit { "on" } else { "off" }) } }
                div { dt { "Contents of calls" } dd { (if server.contents { "kept (console.contents)" } else { "not kept" }) } }
                div {
                    dt { "Compile cache" }
                    dd {
                        @if let Some(why) = &server.no_cache { (why) } @else {
                            form method="post" action={ (PATH) "/cache" } {
                                (csrf(session))
                                button.quiet type="submit" { "Clear the compile cache" }
                            }
                        }
                    }
                }
            }
        }
    }
}
