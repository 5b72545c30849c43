//! The page of all plugins.

use maud::{Markup, html};

use super::elements::{plugin_link, plugin_row_badge, problem_lines, search_form, similar_notice};
use super::layout::{NavigationItem, layout};
use crate::formatting::format_count;
use crate::page_context::PageContext;
use crate::search_query::SearchQuery;
use crate::server_data::PluginRow;
use crate::sessions::ConsoleSession;

/// Maximum number of plugins on the page.
const MAX_PLUGINS_SHOWN: usize = 500;

/// Renders the plugins whose id, purpose, problems or permissions match `search`.
pub(crate) fn plugins(context: &PageContext, session: &ConsoleSession, search: &str) -> Markup {
    let all = context.operations.plugins();
    let query = SearchQuery::parse(search);
    let (matching, is_similar) = query.select(&all, |query, row| {
        let texts = row
            .purpose
            .iter()
            .chain(&row.problems)
            .chain(&row.permissions)
            .map(String::as_str);
        query.find([row.id.as_str()].into_iter().chain(texts))
    });
    let matching: Vec<&PluginRow> = matching;
    let body = html! {
        (search_form("/plugins", "Id, purpose, permission or problem", search, &html! {}))
        div #plugins data-live {
            p.count { (format_count(matching.len(), "plugin")) @if !query.is_empty() { " of " (all.len()) } }
            (similar_notice(is_similar))
            @if all.is_empty() {
                p.empty { "The plugin folder is empty. Copy a .wasm file into it: its tools appear here after a moment." }
            }
            ul.rows {
                @for row in matching.iter().take(MAX_PLUGINS_SHOWN) {
                    li {
                        div.name {
                            (plugin_link(&row.id)) (plugin_row_badge(row))
                            span.of { (format_count(row.tools, "tool")) }
                        }
                        @if let Some(about) = &row.purpose { p { (about) } }
                        (problem_lines(row))
                        @if row.permissions.is_empty() {
                            @if row.tools > 0 { p.grant { "Reaches nothing outside its own memory." } }
                        } @else {
                            p.grant { "May use: " (row.permissions.join("; ")) }
                        }
                    }
                }
            }
            @if matching.len() > MAX_PLUGINS_SHOWN { p.count { "Search for one of the " (format_count(matching.len() - MAX_PLUGINS_SHOWN, "other")) "." } }
        }
    };
    layout(session, NavigationItem::Plugins, "Plugins", true, &body)
}
