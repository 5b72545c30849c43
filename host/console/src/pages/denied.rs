//! The page of operations that were denied to plugins, with the grant lines that would allow them.

use maud::{Markup, html};

use super::elements::{plugin_link, time_element, tool_link};
use super::layout::{NavigationItem, layout};
use crate::denials::DenialNote;
use crate::formatting::format_amount;
use crate::page_context::PageContext;
use crate::sessions::ConsoleSession;

/// Renders the denied operations.
pub(crate) fn denied(context: &PageContext, session: &ConsoleSession) -> Markup {
    let (counted_denials, total): (Vec<(DenialNote, u64)>, u64) = {
        let denials = context.activity.lock_denials();
        (denials.newest().cloned().collect(), denials.count)
    };
    let body = html! {
        p.lead {
            "Operations that plugins tried and their grants do not allow. To allow one, add the lines to the grant: \
             the console cannot change it."
        }
        div #denied data-live {
            @if counted_denials.is_empty() {
                p.empty { "Nothing was denied since " (context.activity.since()) "." }
            } @else {
                p.count { (format_amount(total)) " since " (context.activity.since()) }
                ul.rows {
                    @for (denial, times) in &counted_denials {
                        li {
                            div.name {
                                (plugin_link(&denial.plugin)) span.of { "in a call of " (tool_link(&denial.tool)) }
                                span.when { @if *times > 1 { (format_amount(*times)) " times, last at " } (time_element(denial.at)) }
                            }
                            p { (denial.operation) }
                            @match &denial.remedy {
                                Some(remedy) => {
                                    p.hint { "Under " code { "[permissions]" } " in " code { (denial.plugin) ".toml" } ":" }
                                    pre tabindex="0" { (remedy) }
                                }
                                None => { p.hint { "No grant allows that." } }
                            }
                        }
                    }
                }
            }
        }
    };
    layout(session, NavigationItem::Denied, "Denials", true, &body)
}
