//! Calls that a person must allow.

use std::time::SystemTime;

use maud::{Markup, html};

use super::layout::{Place, layout};
use super::parts::{at, to_plugin, to_tool};
use crate::approvals::ApprovalNote;
use crate::desk::Desk;
use crate::sessions::Session;
use crate::shown::count;

/// Calls that a person must allow.
pub(crate) fn approvals(desk: &Desk, session: &Session) -> Markup {
    let now = SystemTime::now();
    let all: Vec<ApprovalNote> = desk.watch.approvals().newest().cloned().collect();
    let (waiting, over): (Vec<&ApprovalNote>, Vec<&ApprovalNote>) = all.iter().partition(|one| one.waits(now));
    let body = html! {
        p.lead {
            "Calls that a grant lets nobody make without a person’s yes (" code { "approve" } "). The question is with the client \
             that calls, and so is what continues the call: the server keeps nothing while a person thinks. Answer there; from \
             here, nobody can."
        }
        div #approvals data-live {
            section aria-labelledby="waiting" {
                h2 #waiting { (count(waiting.len(), "call")) @if waiting.len() == 1 { " waits" } @else { " wait" } }
                @if waiting.is_empty() { p.empty { "No call waits for an answer." } }
                (table(&waiting, true))
            }
            @if !over.is_empty() {
                section aria-labelledby="over" { h2 #over { "Answered or too late" } (table(&over, false)) }
            }
        }
    };
    layout(session, Place::Approvals, "Approvals", true, &body)
}

fn table(all: &[&ApprovalNote], waiting: bool) -> Markup {
    html! {
        @if !all.is_empty() {
            table.stack {
                thead { tr { th { "Time" } th { "Tool" } th { "Caller" } th { "Answer" } th { "Arguments" } } }
                tbody {
                    @for one in all {
                        tr {
                            td data-label="Time" { (at(one.at)) }
                            th scope="row" { (to_tool(&one.tool)) " " span.of { "of " (to_plugin(&one.plugin)) } }
                            td data-label="Caller" { (one.caller) }
                            td data-label="Answer" { (word(one, waiting)) }
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

fn word(one: &ApprovalNote, waiting: bool) -> Markup {
    let (word, kind) = match one.word {
        "asked" if waiting => ("asked", "mild"),
        "asked" => ("too late", "bad"),
        "approved" | "remembered" => (one.word, "good"),
        other => (other, "bad"),
    };
    html! { span.badge.(kind) { (word) } }
}
