//! The page of all tools, with search.

use maud::{Markup, html};

use super::layout::{NavigationItem, layout};
use super::parts::{search, tool_rows};
use crate::desk::PageContext;
use crate::paths::PATH;
use crate::sessions::ConsoleSession;
use crate::shown::{count, query};

/// Number of tools on a page.
const MOST: usize = 100;

/// Renders the tools that contain `wanted`, starting at the index `from`.
pub(crate) fn tools(desk: &PageContext, session: &ConsoleSession, wanted: &str, from: usize) -> Markup {
    let found = desk.operations.tools(wanted.trim(), from, MOST);
    let after = from.saturating_add(found.rows.len());
    let to = |from: usize| format!("{PATH}/tools?{}", query(&[("q", wanted), ("from", &from.to_string())]));
    let body = html! {
        (search("/tools", "Name, description or plugin", wanted, &html! {}))
        p.count {
            (count(found.matching, "tool"))
            @if found.rows.len() < found.matching && !found.rows.is_empty() { ", these are " (from + 1) " to " (after) }
        }
        @if found.rows.is_empty() {
            p.empty { @if wanted.trim().is_empty() { "No plugin in service offers a tool." } @else { "No tool matches." } }
        }
        (tool_rows(&found.rows, true))
        @if from > 0 || after < found.matching {
            nav.pages aria-label="Pages" {
                @if from > 0 { a href=(to(from.saturating_sub(MOST))) rel="prev" { "Previous" } }
                @if after < found.matching { a href=(to(after)) rel="next" { "Next" } }
            }
        }
    };
    layout(session, NavigationItem::Tools, "Tools", false, &body)
}
