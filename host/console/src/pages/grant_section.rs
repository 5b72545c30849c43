//! The grant of a plugin as text, and the grant that the plugin proposes.

use std::time::Duration;

use maud::{Markup, html};
use similar::{ChangeTag, TextDiff};

use super::elements::time_element;
use crate::server_data::{GrantProposal, GrantText, PreviousGrant};

/// Maximum size of each compared text, in bytes.
const MAX_COMPARED_BYTES: usize = 64 << 10;

/// Maximum time of a comparison. A comparison that takes longer is less precise.
const COMPARISON_TIMEOUT: Duration = Duration::from_millis(200);

/// Number of unchanged lines around a change.
const CONTEXT_LINES: usize = 3;

/// Renders the grant as text, with its difference to the previous one.
pub(super) fn grant_text(grant: &GrantText) -> Markup {
    html! {
        details data-key="grant-text" {
            summary { "As text" }
            p.hint { "As the server read it, without comments. Values of " code { "[config]" } " and of secrets are not shown." }
            @if grant.text.trim().is_empty() { p.empty { "The grant is empty." } } @else { pre tabindex="0" { (grant.text) } }
        }
        @if let Some(previous) = &grant.previous { (difference(previous, &grant.text)) }
    }
}

fn difference(previous: &PreviousGrant, current: &str) -> Markup {
    let start = |text: &str| {
        let end = text.floor_char_boundary(MAX_COMPARED_BYTES);
        text.get(..end).unwrap_or_default().to_owned()
    };
    let (old, new) = (start(&previous.text), start(current));
    let is_cut = old.len() < previous.text.len() || new.len() < current.len();
    let lines = changed_lines(&old, &new);
    html! {
        details data-key="grant-change" {
            summary { "Last change, at " (time_element(previous.replaced_at)) }
            @if previous.text.is_empty() { p.hint { "Before, there was no grant." } }
            @if lines.is_empty() { p.empty { "Only comments, or values that are not shown, have changed." } }
            @else {
                pre.diff tabindex="0" {
                    @for (tag, line) in &lines {
                        @match tag {
                            Some(ChangeTag::Insert) => { ins { "+ " (line) } }
                            Some(ChangeTag::Delete) => { del { "- " (line) } }
                            Some(ChangeTag::Equal) => { span { "  " (line) } }
                            None => { span { "…" } }
                        }
                        "\n"
                    }
                }
            }
            @if is_cut { p.hint { "The texts are long, and only their beginnings were compared." } }
        }
    }
}

/// Returns the changed lines, with some lines around them. `None` separates groups of them.
fn changed_lines(old: &str, new: &str) -> Vec<(Option<ChangeTag>, String)> {
    let diff = TextDiff::configure()
        .timeout(COMPARISON_TIMEOUT)
        .diff_lines(old, new);
    let mut lines = Vec::new();
    for group in diff.grouped_ops(CONTEXT_LINES) {
        if !lines.is_empty() {
            lines.push((None, String::new()));
        }
        for change in group
            .iter()
            .flat_map(|operation| diff.iter_changes(operation))
        {
            let text = change.value().trim_end_matches('\n').to_owned();
            lines.push((Some(change.tag()), text));
        }
    }
    lines
}

/// Renders a proposed grant as a proposal, and its differences from the grant in force.
pub(super) fn grant_proposal(proposal: &GrantProposal) -> Markup {
    html! {
        p.hint { "The author of the plugin proposes this. It allows nothing." }
        @if !proposal.excess.is_empty() {
            section.problems.mild {
                p { strong { "The grant allows more than the plugin proposes:" } }
                ul { @for excess in &proposal.excess { li { (excess) } } }
            }
        }
        @if !proposal.missing.is_empty() {
            p.hint { "The grant does not allow, although the plugin proposes it: " (proposal.missing.join("; ")) }
        }
        pre tabindex="0" { (proposal.text) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_lines_have_lines_around_them() {
        let lines = |texts: &[(usize, &str)]| {
            let text = (0..20).map(|number| {
                let changed = texts.iter().find(|(at, _)| *at == number);
                changed.map_or(format!("line {number}\n"), |(_, text)| format!("{text}\n"))
            });
            text.collect::<String>()
        };
        let changes = changed_lines(&lines(&[]), &lines(&[(2, "x"), (17, "y")]));
        let shown: Vec<String> = changes
            .iter()
            .map(|(tag, line)| match tag {
                Some(tag) => format!("{tag}{line}"),
                None => "…".to_owned(),
            })
            .collect();
        assert_eq!(
            shown,
            [
                " line 0", " line 1", "-line 2", "+x", " line 3", " line 4", " line 5", "…",
                " line 14", " line 15", " line 16", "-line 17", "+y", " line 18", " line 19"
            ]
        );
        assert!(changed_lines("a\n", "a\n").is_empty());
    }

    #[test]
    fn long_grants_are_compared_within_bounds() {
        let long = "x = 1\n".repeat(100_000);
        let other = "y = 1\n".repeat(100_000);
        let previous = PreviousGrant {
            text: long,
            replaced_at: std::time::SystemTime::UNIX_EPOCH,
        };
        let shown = difference(&previous, &other).into_string();
        assert!(shown.contains("only their beginnings"), "{}", shown.len());
        assert!(shown.len() < 1 << 20, "{}", shown.len());
    }
}
