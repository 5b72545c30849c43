//! The page of all plugins.

use maud::{Markup, html};

use super::layout::{NavigationItem, layout};
use super::parts::{search, status, to_plugin};
use crate::data::PluginRow;
use crate::desk::PageContext;
use crate::sessions::ConsoleSession;
use crate::shown::count;

/// Maximum number of plugins on the page.
const MOST: usize = 500;

/// Renders the plugins whose id, purpose, problems or permissions contain `wanted`.
pub(crate) fn plugins(desk: &PageContext, session: &ConsoleSession, wanted: &str) -> Markup {
    let (all, lower) = (desk.operations.plugins(), wanted.trim().to_lowercase());
    let contains = |text: &String| text.to_lowercase().contains(&lower);
    let matches = |row: &&PluginRow| {
        lower.is_empty()
            || contains(&row.id)
            || row.about.iter().chain(&row.problems).chain(&row.permissions).any(contains)
    };
    let found: Vec<&PluginRow> = all.iter().filter(matches).collect();
    let body = html! {
        (search("/plugins", "Id, purpose, permission or problem", wanted, &html! {}))
        div #plugins data-live {
            p.count { (count(found.len(), "plugin")) @if !lower.is_empty() { " of " (all.len()) } }
            @if all.is_empty() {
                p.empty { "The plugin folder is empty. Copy a .wasm file into it: its tools are here a moment later." }
            }
            ul.rows {
                @for row in found.iter().take(MOST) {
                    li {
                        div.name {
                            (to_plugin(&row.id)) (status(row.status))
                            span.of { (count(row.tools, "tool")) }
                        }
                        @if let Some(about) = &row.about { p { (about) } }
                        @for problem in row.problems.iter().take(3) { p.problem { (problem) } }
                        @if row.permissions.is_empty() {
                            @if row.tools > 0 { p.grant { "Reaches nothing outside its own memory." } }
                        } @else {
                            p.grant { "May use: " (row.permissions.join("; ")) }
                        }
                    }
                }
            }
            @if found.len() > MOST { p.count { "Search for one of the " (count(found.len() - MOST, "other")) "." } }
        }
    };
    layout(session, NavigationItem::Plugins, "Plugins", true, &body)
}
