//! The page of calls that require approval by a person.

use std::time::SystemTime;

use maud::{Markup, html};

use super::elements::{csrf_input, notice_element, plugin_link, time_element, tool_link};
use super::grant_section::grant_proposal;
use super::layout::{NavigationItem, layout};
use crate::approvals::ApprovalNote;
use crate::formatting::format_count;
use crate::page_context::PageContext;
use crate::paths::PATH;
use crate::server_data::WaitingApproval;
use crate::sessions::ConsoleSession;

/// Renders the page of calls that require approval.
pub(crate) fn approvals(
    context: &PageContext,
    session: &ConsoleSession,
    notice: Option<&str>,
) -> Markup {
    let now = SystemTime::now();
    let all: Vec<ApprovalNote> = context
        .activity
        .lock_approvals()
        .newest()
        .cloned()
        .collect();
    let waiting = context.operations.waiting_approvals();
    let (open_notes, closed_notes): (Vec<&ApprovalNote>, Vec<&ApprovalNote>) =
        all.iter().partition(|one| one.is_open(now));
    let client_only = not_waiting(open_notes, &waiting);
    let number = waiting.len() + client_only.len();
    let body = html! {
        (notice_element(notice))
        p.lead {
            "Calls that need a person’s approval (" code { "require_approval" } "). The first answer, \
             here or at the client, decides."
        }
        p { button.quiet type="button" data-notices hidden aria-pressed="false" { "Notify me in this browser" } }
        div #approvals data-live {
            section aria-labelledby="waiting" {
                h2 #waiting { (format_count(number, "call")) @if number == 1 { " waits" } @else { " wait" } }
                @if number == 0 { p.empty { "No call waits for an answer." } }
                @for one in &waiting { (question(context, session, one)) }
                @if !client_only.is_empty() {
                    h3 { "Only the client can answer" }
                    p.hint {
                        "The client has the question and the state that continues the call: the server \
                         stores nothing while a person thinks."
                    }
                    (table(&client_only, true))
                }
            }
            @if !closed_notes.is_empty() {
                section aria-labelledby="over" { h2 #over { "Closed" } (table(&closed_notes, false)) }
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
    open_notes: Vec<&'a ApprovalNote>,
    waiting: &[WaitingApproval],
) -> Vec<&'a ApprovalNote> {
    let mut unmatched: Vec<&WaitingApproval> = waiting.iter().collect();
    let is_other = |note: &&ApprovalNote| {
        let is_same_call = |approval: &&WaitingApproval| {
            (&approval.caller, &approval.plugin, &approval.tool)
                == (&note.caller, &note.plugin, &note.tool)
        };
        unmatched
            .iter()
            .position(is_same_call)
            .map(|at| unmatched.swap_remove(at))
            .is_none()
    };
    open_notes.into_iter().filter(is_other).collect()
}

/// Renders a question and its answer buttons.
fn question(context: &PageContext, session: &ConsoleSession, approval: &WaitingApproval) -> Markup {
    let may_answer = context.operations.may_use(&session.viewer, &approval.tool);
    html! {
        section.question aria-label={ "Call of " (approval.tool) ", number " (approval.id) } {
            h3 { (tool_link(&approval.tool)) " " span.of { "of " (plugin_link(&approval.plugin)) } }
            p.hint {
                "Asked at " (time_element(approval.asked_at)) " by " (approval.caller) ". "
                @if approval.is_for_operator { "Its client is not asked. " }
                "The answer counts until " (time_element(approval.expires_at)) "."
            }
            @if may_answer {
                pre tabindex="0" { (approval.question) }
                (proposal_details(context, approval))
                div.actions {
                    (button(session, approval, "approve", &format!("Approve {}", approval.covered_calls)))
                    (button(session, approval, "decline", "Decline"))
                }
            } @else {
                p { "Your token may not call this tool, so it cannot allow a call of it either." }
            }
        }
    }
}

/// Renders the grant that the plugin of a call proposes, so that the call can be compared with it.
fn proposal_details(context: &PageContext, approval: &WaitingApproval) -> Markup {
    html! {
        @if let Some(proposal) = context.operations.proposal(&approval.plugin) {
            details data-key={ "proposal-" (approval.id) } {
                summary { "What the plugin proposes to be allowed" }
                (grant_proposal(&proposal))
            }
        }
    }
}

fn button(
    session: &ConsoleSession,
    approval: &WaitingApproval,
    answer: &str,
    label: &str,
) -> Markup {
    html! {
        form.decision method="post" action={ (PATH) "/approval" } {
            (csrf_input(session))
            input type="hidden" name="id" value=(approval.id);
            button.quiet[answer != "approve"] type="submit" name="answer" value=(answer) data-key={ (answer) "-" (approval.id) } {
                (label)
            }
        }
    }
}

fn table(notes: &[&ApprovalNote], is_waiting: bool) -> Markup {
    html! {
        @if !notes.is_empty() {
            table.stack {
                thead { tr { th { "Time" } th { "Tool" } th { "Caller" } th { "Answer" } th { "Arguments" } } }
                tbody {
                    @for one in notes {
                        tr {
                            td data-label="Time" { (time_element(one.at)) }
                            th scope="row" { (tool_link(&one.tool)) " " span.of { "of " (plugin_link(&one.plugin)) } }
                            td data-label="Caller" { (one.caller) }
                            td data-label="Answer" {
                                (status_badge(one, is_waiting))
                                @if let Some(by) = &one.answered_by { " " span.of { "by " (by) } }
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

fn status_badge(note: &ApprovalNote, is_waiting: bool) -> Markup {
    let (word, kind) = match note.status {
        "requested" if is_waiting => ("requested", "mild"),
        "requested" => ("timed-out", "bad"),
        "approved" | "remembered" => (note.status, "good"),
        other => (other, "bad"),
    };
    html! { span.badge.(kind) { (word) } }
}
