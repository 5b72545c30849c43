//! The page of all tools, with search.

use maud::{Markup, html};

use super::elements::{search_form, tool_rows};
use super::layout::{NavigationItem, layout};
use crate::formatting::{encode_query, format_count};
use crate::page_context::PageContext;
use crate::paths::PATH;
use crate::sessions::ConsoleSession;

/// Number of tools on a page.
const TOOLS_PER_PAGE: usize = 100;

/// Renders the tools that contain `search`, starting at the index `offset`.
pub(crate) fn tools(
    desk: &PageContext,
    session: &ConsoleSession,
    wanted: &str,
    from: usize,
) -> Markup {
    let found = desk.operations.tools(wanted.trim(), from, TOOLS_PER_PAGE);
    let after = from.saturating_add(found.rows.len());
    let to = |from: usize| {
        format!(
            "{PATH}/tools?{}",
            encode_query(&[("q", wanted), ("from", &from.to_string())])
        )
    };
    let body = html! {
        (search_form("/tools", "Name, description or plugin", wanted, &html! {}))
        p.count {
            (format_count(found.total, "tool"))
            @if found.rows.len() < found.total && !found.rows.is_empty() { ", these are " (from + 1) " to " (after) }
        }
        @if found.rows.is_empty() {
            p.empty { @if wanted.trim().is_empty() { "No plugin in service offers a tool." } @else { "No tool matches." } }
        }
        (tool_rows(&found.rows, true))
        @if from > 0 || after < found.total {
            nav.pages aria-label="Pages" {
                @if from > 0 { a href=(to(from.saturating_sub(TOOLS_PER_PAGE))) rel="prev" { "Previous" } }
                @if after < found.total { a href=(to(after)) rel="next" { "Next" } }
            }
        }
    };
    layout(session, NavigationItem::Tools, "Tools", false, &body)
}
