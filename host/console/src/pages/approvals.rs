//! The page of calls that require approval by a person.

use std::time::SystemTime;

use maud::{Markup, html};

use super::elements::{csrf_input, notice_element, plugin_link, time_element, tool_link};
use super::layout::{NavigationItem, layout};
use crate::approvals::ApprovalNote;
use crate::formatting::format_count;
use crate::page_context::PageContext;
use crate::paths::PATH;
use crate::server_data::WaitingApproval;
use crate::sessions::ConsoleSession;

/// Renders the page of calls that require approval.
pub(crate) fn approvals(
    desk: &PageContext,
    session: &ConsoleSession,
    done: Option<&str>,
) -> Markup {
    let now = SystemTime::now();
    let all: Vec<ApprovalNote> = desk.activity.lock_approvals().newest().cloned().collect();
    let waiting = desk.operations.waiting_approvals();
    let (asked, over): (Vec<&ApprovalNote>, Vec<&ApprovalNote>) =
        all.iter().partition(|one| one.is_open(now));
    let elsewhere = not_waiting(asked, &waiting);
    let number = waiting.len() + elsewhere.len();
    let body = html! {
        (notice_element(done))
        p.lead {
            "Calls that need a person’s approval (" code { "require_approval" } "). The first answer, \
             here or at the client, decides."
        }
        div #approvals data-live {
            section aria-labelledby="waiting" {
                h2 #waiting { (format_count(number, "call")) @if number == 1 { " waits" } @else { " wait" } }
                @if number == 0 { p.empty { "No call waits for an answer." } }
                @for one in &waiting { (question(desk, session, one)) }
                @if !elsewhere.is_empty() {
                    h3 { "Only the client can answer" }
                    p.hint {
                        "The client has the question and the state that continues the call: the server \
                         stores nothing while a person thinks."
                    }
                    (table(&elsewhere, true))
                }
            }
            @if !over.is_empty() {
                section aria-labelledby="over" { h2 #over { "Closed" } (table(&over, false)) }
            }
        }
    };
    layout(session, NavigationItem::Approvals, "Approvals", true, &body)
}

/// Renders a notice that an answer came too late.
pub(crate) fn too_late(session: &ConsoleSession) -> Markup {
    let body = html! {
        p.empty {
            "No call waits for this answer: it was answered already, here or at the client, it was cancelled, its \
             question expired, or it never existed. Your answer has no effect."
        }
        p { a href={ (PATH) "/approvals" } { "Back to the approvals" } }
    };
    layout(session, NavigationItem::Approvals, "Too late", false, &body)
}

/// Returns the questions that do not belong to a call in `waiting`.
fn not_waiting<'a>(
    asked: Vec<&'a ApprovalNote>,
    waiting: &[WaitingApproval],
) -> Vec<&'a ApprovalNote> {
    let mut left: Vec<&WaitingApproval> = waiting.iter().collect();
    let is_other = |note: &&ApprovalNote| {
        let same = |one: &&WaitingApproval| {
            (&one.caller, &one.plugin, &one.tool) == (&note.caller, &note.plugin, &note.tool)
        };
        left.iter()
            .position(same)
            .map(|at| left.swap_remove(at))
            .is_none()
    };
    asked.into_iter().filter(is_other).collect()
}

/// Renders a question and its answer buttons.
fn question(desk: &PageContext, session: &ConsoleSession, one: &WaitingApproval) -> Markup {
    let may = desk.operations.may_use(&session.viewer, &one.tool);
    html! {
        section.question aria-label={ "Call of " (one.tool) ", number " (one.id) } {
            h3 { (tool_link(&one.tool)) " " span.of { "of " (plugin_link(&one.plugin)) } }
            p.hint { "Asked at " (time_element(one.asked_at)) " by " (one.caller) ". The answer counts until " (time_element(one.expires_at)) "." }
            @if may {
                pre tabindex="0" { (one.question) }
                div.actions {
                    (button(session, one, "approve", "Approve"))
                    (button(session, one, "decline", "Decline"))
                }
            } @else {
                p { "Your token may not call this tool, so it cannot allow a call of it either." }
            }
        }
    }
}

fn button(session: &ConsoleSession, one: &WaitingApproval, answer: &str, label: &str) -> Markup {
    html! {
        form.decision method="post" action={ (PATH) "/approval" } {
            (csrf_input(session))
            input type="hidden" name="id" value=(one.id);
            button.quiet[answer != "approve"] type="submit" name="answer" value=(answer) data-key={ (answer) "-" (one.id) } {
                (label)
            }
        }
    }
}

fn table(all: &[&ApprovalNote], waiting: bool) -> Markup {
    html! {
        @if !all.is_empty() {
            table.stack {
                thead { tr { th { "Time" } th { "Tool" } th { "Caller" } th { "Answer" } th { "Arguments" } } }
                tbody {
                    @for one in all {
                        tr {
                            td data-label="Time" { (time_element(one.at)) }
                            th scope="row" { (tool_link(&one.tool)) " " span.of { "of " (plugin_link(&one.plugin)) } }
                            td data-label="Caller" { (one.caller) }
                            td data-label="Answer" {
                                (status_badge(one, waiting))
                                @if let Some(by) = &one.by { " " span.of { "by " (by) } }
                            }
                            td data-label="Arguments" {
                                @if let Some(digest) = one.arguments { code title="SHA-256" { (digest.to_string().get(..12).unwrap_or_default()) } } @else { "–" }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn status_badge(one: &ApprovalNote, waiting: bool) -> Markup {
    let (word, kind) = match one.status {
        "requested" if waiting => ("requested", "mild"),
        "requested" => ("timed-out", "bad"),
        "approved" | "remembered" => (one.status, "good"),
        other => (other, "bad"),
    };
    html! { span.badge.(kind) { (word) } }
}
