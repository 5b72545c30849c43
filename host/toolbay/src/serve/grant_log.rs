//! Logs what a changed grant allows and no longer allows, in words.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use toolbay_catalog::{PluginFileStatus, PluginReport, PublishListener, Snapshot};
use toolbay_model::text::clean_line;

use crate::serve::grant_text::{permission_lines, term_lines};

/// Maximum length of a logged difference, in bytes. A grant can have thousands of rules.
const MAX_LOGGED_BYTES: usize = 4_000;

/// Logs the difference between two grants of a plugin.
#[derive(Debug, Default)]
pub(crate) struct GrantLog {
    /// The lines of the grant that applies, by plugin.
    applied: Mutex<BTreeMap<String, Vec<String>>>,
}

impl PublishListener for GrantLog {
    fn before_publish(&self, previous: &Snapshot, next: &Snapshot) {
        let Ok(mut applied) = self.applied.lock() else {
            return;
        };
        applied.retain(|id, _| next.plugins.contains_key(id));
        for (id, report) in &next.plugins {
            // Most plugins stay as they are in a publication. A changed grant makes another version.
            let state =
                |report: &PluginReport| (report.status, report.version.as_ref().map(Arc::as_ptr));
            let before = previous.plugins.get(id).map(state);
            if before == Some(state(report)) && applied.contains_key(id) {
                continue;
            }
            let Some(lines) = applied_lines(report) else {
                continue;
            };
            let Some(before) = applied.get_mut(id) else {
                applied.insert(id.clone(), lines);
                continue;
            };
            if let Some(difference) = describe_difference(before, &lines) {
                tracing::info!(plugin = id, "grant changed: {difference}");
                *before = lines;
            }
        }
    }
}

/// Returns the lines of a plugin's grant. Returns `None` until a changed grant settles: an
/// intersection of both versions applies until then.
fn applied_lines(report: &PluginReport) -> Option<Vec<String>> {
    let version = report.version.as_deref()?;
    if report.status != PluginFileStatus::Ready || version.terms.source_grant.is_partial {
        return None;
    }
    let grant = report.grant.as_ref()?;
    let mut lines = permission_lines(grant);
    lines.extend(term_lines(grant));
    Some(lines)
}

/// Describes the lines that only one of two grants has. Returns `None` if there are none.
fn describe_difference(before: &[String], now: &[String]) -> Option<String> {
    let only_in = |lines: &[String], others: &[String]| -> Vec<String> {
        let lines = lines.iter().filter(|line| !others.contains(line));
        lines.cloned().collect()
    };
    let removed = only_in(before, now);
    let added = only_in(now, before);
    let parts: Vec<String> = [("no longer", removed), ("now", added)]
        .into_iter()
        .filter(|(_, lines)| !lines.is_empty())
        .map(|(word, lines)| format!("{word} {}", lines.join("; ")))
        .collect();
    (!parts.is_empty()).then(|| clean_line(&parts.join("; "), MAX_LOGGED_BYTES))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_difference_names_what_was_removed_and_added() {
        let lines = |lines: &[&str]| -> Vec<String> {
            lines.iter().map(|line| (*line).to_owned()).collect()
        };
        let before = lines(&["HTTP requests: a", "mount: /a at /a (read-only)"]);
        let now = lines(&["HTTP requests: a, b", "mount: /a at /a (read-only)"]);
        assert_eq!(
            describe_difference(&before, &now).unwrap(),
            "no longer HTTP requests: a; now HTTP requests: a, b"
        );
        assert_eq!(
            describe_difference(&before, &[]).unwrap(),
            "no longer HTTP requests: a; mount: /a at /a (read-only)"
        );
        assert_eq!(describe_difference(&now, &now), None);
        let long = lines(&["x".repeat(2 * MAX_LOGGED_BYTES).as_str()]);
        assert!(describe_difference(&[], &long).unwrap().len() <= MAX_LOGGED_BYTES + 10);
    }
}
