//! The text of snapshots that compare revisions.

use std::fmt::Display;

use crate::protocol::revision::Revision;

/// Returns one entry per revision that differs from the previous one: its date and its text. A
/// new revision without a difference changes no snapshot.
pub(crate) fn revision_changes<T: Display>(
    texts: impl IntoIterator<Item = (Revision, T)>,
) -> String {
    let mut texts: Vec<(Revision, String)> = texts
        .into_iter()
        .map(|(revision, text)| (revision, text.to_string()))
        .collect();
    texts.dedup_by(|(_, next), (_, previous)| next == previous);
    let entries = texts.iter();
    let entries: Vec<String> = entries
        .map(|(revision, text)| format!("{revision}\n{}\n", text.trim_end()))
        .collect();
    entries.concat()
}
