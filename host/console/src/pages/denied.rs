//! The page of operations that were denied to plugins, with the grant lines that would allow them.

use maud::{Markup, html};

use super::elements::{plugin_link, time_element, tool_link};
use super::layout::{NavigationItem, layout};
use crate::denials::DenialNote;
use crate::formatting::format_amount;
use crate::page_context::PageContext;
use crate::paths::PATH;
use crate::sessions::ConsoleSession;

/// Renders the denied operations: those of `plugin`, or all if it is empty.
pub(crate) fn denied(context: &PageContext, session: &ConsoleSession, plugin: &str) -> Markup {
    let (counted_denials, total): (Vec<(DenialNote, u64)>, u64) = {
        let denials = context.activity.lock_denials();
        let of_plugin =
            |(denial, _): &&(DenialNote, u64)| plugin.is_empty() || denial.plugin == plugin;
        (
            denials.newest().filter(of_plugin).cloned().collect(),
            denials.count,
        )
    };
    let body = html! {
        p.lead {
            "Operations that plugins tried and their grants do not allow. To allow one, add the lines to the grant: \
             the console cannot change it."
        }
        @if !plugin.is_empty() {
            p.count { "Only those of " (plugin_link(plugin)) ". " a href={ (PATH) "/denials" } { "Show all" } }
        }
        div #denied data-live {
            @if counted_denials.is_empty() {
                p.empty { "Nothing was denied since " (context.activity.since()) "." }
            } @else {
                p.count { (format_amount(total)) " since " (context.activity.since()) @if !plugin.is_empty() { ", of all plugins" } }
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
                                None if names_secret(denial) => {
                                    p.hint {
                                        "No permission is missing, but the value of a secret. Its source is in " code { "[secrets]" } " of "
                                        code { (denial.plugin) ".toml" } ". With " code { "caller_folder" }
                                        ", the value is in the file of that folder whose path is the caller’s name."
                                    }
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

/// Returns whether an operation was denied because a secret has no value.
fn names_secret(denial: &DenialNote) -> bool {
    [
        "must carry the secret ",
        "must carry the caller's own secret ",
    ]
    .iter()
    .any(|words| denial.operation.contains(words))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::denials::tests::denial;

    #[test]
    fn missing_secret_is_recognized() {
        let words = "A request to https://a.example must carry the caller's own secret \"k\", and this caller has none on this server.";
        assert!(names_secret(&denial("p", words)));
        assert!(!names_secret(&denial(
            "p",
            "A request to https://a.example."
        )));
    }
}
