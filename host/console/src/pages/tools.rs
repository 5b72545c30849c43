//! The page of all tools, with search.

use maud::{Markup, html};

use super::elements::{search_form, similar_notice, tool_rows};
use super::layout::{NavigationItem, layout};
use crate::formatting::{encode_query, format_count};
use crate::page_context::PageContext;
use crate::paths::PATH;
use crate::sessions::ConsoleSession;

/// Number of tools on a page.
const TOOLS_PER_PAGE: usize = 100;

/// Renders the tools that match `search`, starting at the index `offset`.
pub(crate) fn tools(
    context: &PageContext,
    session: &ConsoleSession,
    search: &str,
    offset: usize,
) -> Markup {
    let matching = context
        .operations
        .tools(search.trim(), offset, TOOLS_PER_PAGE);
    let end = offset.saturating_add(matching.rows.len());
    let page_link = |index: usize| {
        format!(
            "{PATH}/tools?{}",
            encode_query(&[("q", search), ("from", &index.to_string())])
        )
    };
    let body = html! {
        (search_form("/tools", "Name, description or plugin", search, &html! {}))
        p.count {
            (format_count(matching.total, "tool"))
            @if matching.rows.len() < matching.total && !matching.rows.is_empty() { ", these are " (offset + 1) " to " (end) }
        }
        (similar_notice(matching.is_similar))
        @if matching.rows.is_empty() {
            p.empty { @if search.trim().is_empty() { "No plugin in service offers a tool." } @else { "No tool matches." } }
        }
        (tool_rows(&matching.rows, true))
        @if offset > 0 || end < matching.total {
            nav.pages aria-label="Pages" {
                @if offset > 0 { a href=(page_link(offset.saturating_sub(TOOLS_PER_PAGE))) rel="prev" { "Previous" } }
                @if end < matching.total { a href=(page_link(end)) rel="next" { "Next" } }
            }
        }
    };
    layout(session, NavigationItem::Tools, "Tools", false, &body)
}
