//! The page of a held version: how it differs from the lock file, and the form that approves it.

use std::time::{Duration, Instant};

use maud::{Markup, html};
use toolbay_lock::{ChangedField, ItemDifference, VersionDifference, WarningSigns};
use toolbay_model::Digest;

use super::elements::{csrf_input, plugin_link};
use super::layout::{NavigationItem, layout};
use super::word_difference::{TextComparison, html_bytes, visible_text};
use crate::formatting::format_count;
use crate::paths::PATH;
use crate::server_data::HeldPlugin;
use crate::sessions::ConsoleSession;

/// Maximum size of the differences on the page, in bytes of HTML. A version with more cannot be
/// approved on the page, because it does not show all of them.
const MAX_DIFFERENCE_BYTES: usize = 1 << 20;

/// Time for all comparisons of a page. After that, they are less precise.
const COMPARISON_TIMEOUT: Duration = Duration::from_millis(500);

/// HTML of a row of a table and its cells, in bytes: more than its tags have.
const ROW_BYTES: usize = 512;

/// Renders a held version. `notice` is the reason why an approval had no effect.
pub(crate) fn held_version(
    session: &ConsoleSession,
    held: &HeldPlugin,
    notice: Option<&str>,
) -> Markup {
    let mut shown = ShownDifference::new(MAX_DIFFERENCE_BYTES);
    let difference = shown.render(&held.difference, &held.signs);
    let omitted = shown.omitted;
    let body = html! {
        @if let Some(why) = notice { p.error role="alert" { (why) } }
        p.lead {
            (plugin_link(&held.id))
            @if held.difference.is_new { " is not in " code { "toolbay.lock" } "." }
            @else { " differs from " code { "toolbay.lock" } "." }
            @if held.is_served { " An approved version stays in service." }
            @else { " It is not in service." }
        }
        (difference)
        (approval_section(session, held, omitted))
    };
    let title = format!("Held: {}", held.id);
    layout(session, NavigationItem::Plugins, &title, false, &body)
}

/// Renders a notice that a version that was to be approved is no longer held.
pub(crate) fn no_longer_held(session: &ConsoleSession, id: &str) -> Markup {
    let body = html! {
        p.empty {
            "Nothing was approved: no version of this plugin is held now. Its files or " code { "toolbay.lock" } " have changed since \
             you loaded the page."
        }
        p { "Back to the plugin: " (plugin_link(id)) }
    };
    layout(
        session,
        NavigationItem::Plugins,
        "No longer held",
        false,
        &body,
    )
}

/// The part of a difference that is on the page.
struct ShownDifference {
    /// The size that is left, in bytes of HTML.
    room: usize,
    deadline: Instant,
    /// Number of changes that are not on the page.
    omitted: usize,
}

/// A row of a table: the name of the part, and both versions of it.
struct ComparisonRow {
    name: Markup,
    before: Markup,
    after: Markup,
}

impl ShownDifference {
    fn new(room: usize) -> Self {
        Self {
            room,
            deadline: Instant::now() + COMPARISON_TIMEOUT,
            omitted: 0,
        }
    }

    fn render(&mut self, difference: &VersionDifference, signs: &WarningSigns) -> Markup {
        // Destructured completely, so that no part is forgotten.
        let VersionDifference {
            is_new: _,
            component,
            grant,
            about,
            imports,
            permissions,
            items,
        } = difference;
        let signs = self.render_signs(signs);
        let mut rows = Vec::new();
        for (name, digests) in [("component", component), ("grant", grant)] {
            rows.extend(digests.as_ref().and_then(|[before, after]| {
                self.take(2 * ROW_BYTES)
                    .then(|| digest_row(name, *before, *after))
            }));
        }
        if let Some([before, after]) = about {
            rows.extend(self.text_row("purpose", before.as_deref(), after.as_deref()));
        }
        for (name, [removed, added]) in [("imports", imports), ("permissions", permissions)] {
            if !removed.is_empty() || !added.is_empty() {
                rows.extend(self.set_row(name, removed, added));
            }
        }
        let items: Vec<Markup> = items
            .iter()
            .filter_map(|item| self.render_item(item))
            .collect();
        html! {
            (signs)
            @if !rows.is_empty() {
                section aria-labelledby="parts" { h2 #parts { "Plugin" } (comparison_table(&rows)) }
            }
            @if !items.is_empty() {
                section aria-labelledby="items" { h2 #items { "What it offers" } @for item in &items { (item) } }
            }
        }
    }

    /// Reserves room for a change. Counts the change as omitted if there is none.
    fn take(&mut self, bytes: usize) -> bool {
        let is_shown = bytes <= self.room;
        if is_shown {
            self.room -= bytes;
        } else {
            self.omitted += 1;
        }
        is_shown
    }

    fn render_signs(&mut self, signs: &WarningSigns) -> Markup {
        let lines: Vec<String> = signs
            .lines()
            .filter(|line| self.take(ROW_BYTES + html_bytes(line)))
            .collect();
        html! {
            @if !lines.is_empty() {
                section.problems aria-labelledby="signs" {
                    h2 #signs { "Look at this first" }
                    ul { @for line in &lines { li { (visible_text(line)) } } }
                }
                p.hint { "A text without such a sign can still be malicious. Read all of it." }
            }
        }
    }

    fn render_item(&mut self, item: &ItemDifference) -> Option<Markup> {
        let heading_bytes = 2 * ROW_BYTES + html_bytes(&item.name);
        if !self.take(heading_bytes) {
            return None;
        }
        let rows: Vec<ComparisonRow> = item
            .fields
            .iter()
            .filter_map(|field| {
                let ChangedField {
                    name,
                    before,
                    after,
                } = field;
                self.text_row(name, before.as_deref(), after.as_deref())
            })
            .collect();
        let (change, kind) = match (item.is_new, item.is_removed) {
            (true, _) => ("new", "good"),
            (_, true) => ("removed", "bad"),
            _ => ("changed", "mild"),
        };
        Some(html! {
            h3.item {
                (item.kind.noun()) " " code { (visible_text(&item.name)) } " " span.badge.(kind) { (change) }
            }
            @if !rows.is_empty() { (comparison_table(&rows)) }
        })
    }

    fn text_row(
        &mut self,
        name: &str,
        before: Option<&str>,
        after: Option<&str>,
    ) -> Option<ComparisonRow> {
        // A text that does not fit is not compared, so that large versions take no time. What is
        // unchanged need not fit.
        let changed_bytes = before
            .unwrap_or_default()
            .len()
            .abs_diff(after.unwrap_or_default().len());
        let is_out_of_time = self.omitted > 0 && Instant::now() > self.deadline;
        if changed_bytes > self.room || is_out_of_time {
            self.omitted += 1;
            return None;
        }
        let comparison = TextComparison::new(
            before.unwrap_or_default(),
            after.unwrap_or_default(),
            self.deadline,
        );
        let bytes = ROW_BYTES + html_bytes(name) + comparison.html_bytes();
        self.take(bytes).then(|| ComparisonRow {
            name: visible_text(name),
            before: before.map_or_else(nothing, |_| text_cell(&comparison.before())),
            after: after.map_or_else(nothing, |_| text_cell(&comparison.after())),
        })
    }

    fn set_row(
        &mut self,
        name: &str,
        removed: &[String],
        added: &[String],
    ) -> Option<ComparisonRow> {
        let lines = removed.iter().chain(added);
        let bytes = lines
            .map(|line| ROW_BYTES + html_bytes(line))
            .sum::<usize>();
        self.take(ROW_BYTES + bytes).then(|| ComparisonRow {
            name: html! { (name) },
            before: list_cell(removed, |line| html! { del { (visible_text(line)) } }),
            after: list_cell(added, |line| html! { ins { (visible_text(line)) } }),
        })
    }
}

fn comparison_table(rows: &[ComparisonRow]) -> Markup {
    html! {
        table.stack.sides {
            thead { tr { th { "Part" } th { "Approved" } th { "New" } } }
            tbody {
                @for row in rows {
                    tr {
                        th scope="row" { (row.name) }
                        td data-label="Approved" { (row.before) }
                        td data-label="New" { (row.after) }
                    }
                }
            }
        }
    }
}

fn digest_row(name: &str, before: Option<Digest>, after: Option<Digest>) -> ComparisonRow {
    let shown = |digest: Digest| format!("sha256:{digest}");
    ComparisonRow {
        name: html! { (name) },
        before: before.map_or_else(nothing, |digest| html! { del.break { (shown(digest)) } }),
        after: after.map_or_else(nothing, |digest| html! { ins.break { (shown(digest)) } }),
    }
}

fn text_cell(text: &Markup) -> Markup {
    html! { div.text { (text) } }
}

fn list_cell(lines: &[String], render: impl Fn(&str) -> Markup) -> Markup {
    if lines.is_empty() {
        return nothing();
    }
    html! { ul { @for line in lines { li.text { (render(line)) } } } }
}

fn nothing() -> Markup {
    html! { span.of { "none" } }
}

/// Renders the form that approves the version, or why there is none.
fn approval_section(session: &ConsoleSession, held: &HeldPlugin, omitted: usize) -> Markup {
    let command = format!("toolbay lock {}", held.id);
    html! {
        section aria-labelledby="approve" {
            h2 #approve { "Approve" }
            @if omitted > 0 {
                p.error {
                    "This page does not show " (format_count(omitted, "change")) ", because the differences are too long. So you cannot \
                     approve the version here. " code { "toolbay diff " (held.id) } " shows all of them."
                }
                p.hint { "To approve it, run " code { (command) } "." }
            } @else if let Some(why) = &held.obstacle {
                p.error { "You cannot approve the version here: " (why) "." }
                p.hint { "To approve it, run " code { (command) } "." }
            } @else {
                form method="post" action={ (PATH) "/held" } {
                    (csrf_input(session))
                    input type="hidden" name="id" value=(held.id);
                    input type="hidden" name="base" value=[held.base.map(|base| base.to_string())];
                    input type="hidden" name="version" value=(held.version);
                    button type="submit" { "Approve this version" }
                }
                p.hint {
                    "You approve exactly what this page shows. The server puts the version into service, and stores the approval in its \
                     state folder. It counts as long as the entry in " code { "toolbay.lock" } " stays as it is. "
                    code { (command) } " writes the version to " code { "toolbay.lock" } "."
                }
            }
        }
    }
}

#[cfg(test)]
pub(super) mod tests;
