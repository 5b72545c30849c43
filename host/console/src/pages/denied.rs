//! The page of operations that were denied to plugins, with the grant lines that would allow them.

use maud::{Markup, html};

use super::layout::{NavigationItem, layout};
use super::parts::{at, to_plugin, to_tool};
use crate::denials::DenialNote;
use crate::desk::PageContext;
use crate::sessions::ConsoleSession;
use crate::shown::amount;

/// Renders the denied operations.
pub(crate) fn denied(desk: &PageContext, session: &ConsoleSession) -> Markup {
    let (uses, all): (Vec<(DenialNote, u64)>, u64) = {
        let denials = desk.watch.denials();
        (denials.newest().cloned().collect(), denials.count)
    };
    let body = html! {
        p.lead {
            "What plugins wanted to use and their grants do not allow. To allow it, add the lines to the grant yourself: the \
             console cannot."
        }
        div #denied data-live {
            @if uses.is_empty() {
                p.empty { "Nothing was denied since " (desk.watch.since()) "." }
            } @else {
                p.count { (amount(all)) " since " (desk.watch.since()) }
                ul.rows {
                    @for (denial, times) in &uses {
                        li {
                            div.name {
                                (to_plugin(&denial.plugin)) span.of { "in a call of " (to_tool(&denial.tool)) }
                                span.when { @if *times > 1 { (amount(*times)) " times, last at " } (at(denial.at)) }
                            }
                            p { (denial.what) }
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
    layout(session, NavigationItem::Denied, "Denied uses", true, &body)
}
