//! The page of the newest log lines.

use maud::{Markup, html};

use super::layout::{NavigationItem, layout};
use super::parts::search;
use crate::desk::PageContext;
use crate::sessions::ConsoleSession;
use crate::shown::count;

/// Maximum number of lines on the page.
const MOST: usize = 300;

/// Renders the newest log lines that contain `wanted`.
pub(crate) fn log(desk: &PageContext, session: &ConsoleSession, wanted: &str) -> Markup {
    let lower = wanted.trim().to_lowercase();
    let lines: Vec<String> = {
        let log = desk.watch.log_lines();
        log.newest()
            .filter(|line| lower.is_empty() || line.to_lowercase().contains(&lower))
            .take(MOST)
            .cloned()
            .collect()
    };
    let body = html! {
        (search("/log", "Text", wanted, &html! {}))
        div #log data-live {
            p.count { (count(lines.len(), "line")) ", the newest first" }
            ol.log { @for line in &lines { li.(level(line)) { (line) } } }
        }
    };
    layout(session, NavigationItem::Log, "Log", true, &body)
}

/// Returns the style class of a line, based on its level, which follows the time.
fn level(line: &str) -> &'static str {
    match line.split_whitespace().nth(1) {
        Some("ERROR") => "bad",
        Some("WARN") => "mild",
        _ => "plain",
    }
}
