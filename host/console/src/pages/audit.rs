//! The page with the end of the audit log.

use maud::{Markup, html};

use super::elements::outcome_badge;
use super::layout::{NavigationItem, layout};
use crate::server_data::AuditLine;
use crate::sessions::ConsoleSession;

/// Maximum number of lines on the page.
pub(crate) const MAX_AUDIT_LINES: usize = 200;

/// Renders the end of the audit log, if there is one.
pub(crate) fn audit(
    session: &ConsoleSession,
    lines: Option<&Result<Vec<AuditLine>, String>>,
) -> Markup {
    let body = html! {
        @match lines {
            None => { p.empty { "There is no audit log. To keep one, set " code { "audit.folder" } " in toolbay.toml." } }
            Some(Err(why)) => { p.error role="alert" { (why) } }
            Some(Ok(lines)) => {
                p.lead { "The newest lines. " code { "toolbay audit verify" } " finds out whether a line was changed; this page does not." }
                div #audit data-live { (table(lines)) }
            }
        }
    };
    layout(
        session,
        NavigationItem::Audit,
        "Audit log",
        matches!(lines, Some(Ok(_))),
        &body,
    )
}

fn table(lines: &[AuditLine]) -> Markup {
    html! {
        table.stack.audit {
            thead { tr { th { "Time" } th { "Event" } th { "Outcome" } th { "Caller" } th { "Plugin" } th { "Tool" } th { "Details" } } }
            tbody {
                @for line in lines {
                    tr {
                        td data-label="Time" { (line.time.get(..19).unwrap_or(&line.time).replace('T', " ")) }
                        th scope="row" { (line.event) }
                        td data-label="Outcome" { @if !line.outcome.is_empty() { (outcome_badge(&line.outcome)) } }
                        td data-label="Caller" { (line.caller) }
                        td data-label="Plugin" { (line.plugin) }
                        td data-label="Tool" { (line.tool) }
                        td data-label="Details" { span.break { (line.details) } }
                    }
                }
            }
        }
    }
}
