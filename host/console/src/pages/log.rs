//! The page of the newest log lines.

use maud::{Markup, html};

use super::elements::search_form;
use super::layout::{NavigationItem, layout};
use crate::formatting::format_count;
use crate::page_context::PageContext;
use crate::sessions::ConsoleSession;

/// Maximum number of lines on the page.
const MAX_LINES_SHOWN: usize = 300;

/// Renders the newest log lines that contain `search`.
pub(crate) fn log(context: &PageContext, session: &ConsoleSession, search: &str) -> Markup {
    let lower_search = search.trim().to_lowercase();
    let lines: Vec<String> = {
        let log = context.activity.lock_log_lines();
        log.newest()
            .filter(|line| lower_search.is_empty() || line.to_lowercase().contains(&lower_search))
            .take(MAX_LINES_SHOWN)
            .cloned()
            .collect()
    };
    let body = html! {
        (search_form("/log", "Text", search, &html! {}))
        div #log data-live {
            p.count { (format_count(lines.len(), "line")) ", the newest first" }
            ol.log { @for line in &lines { li.(level_class(line)) { (line) } } }
        }
    };
    layout(session, NavigationItem::Log, "Log", true, &body)
}

/// Returns the style class of a line, based on its level, which follows the time.
fn level_class(line: &str) -> &'static str {
    match line.split_whitespace().nth(1) {
        Some("ERROR") => "bad",
        Some("WARN") => "mild",
        _ => "plain",
    }
}
