//! Logs the problems that a new snapshot shows.

use std::collections::{BTreeMap, BTreeSet};

use crate::publish::assemble::PluginState;
use crate::publish::snapshot::Snapshot;

/// Problems that are logged already.
#[derive(Default)]
pub(crate) struct SnapshotLog {
    /// Logged problems of items that are hidden because another plugin has an item of the same
    /// name.
    hidden: BTreeSet<String>,
    /// Logged files that are not plugins.
    noted: BTreeMap<String, String>,
}

impl SnapshotLog {
    /// Logs once each problem of the snapshot that `candidates` do not have.
    pub(crate) fn log_problems(
        &mut self,
        snapshot: &Snapshot,
        candidates: &BTreeMap<String, PluginState>,
    ) {
        self.log_name_conflicts(snapshot, candidates);
        for (name, why) in &snapshot.notes {
            if self.noted.get(name) != Some(why) {
                tracing::warn!("not a plugin: {name}: {why}");
            }
        }
        self.noted.clone_from(&snapshot.notes);
    }

    /// Logs once each item that is hidden because another plugin has an item of the same name.
    fn log_name_conflicts(
        &mut self,
        snapshot: &Snapshot,
        candidates: &BTreeMap<String, PluginState>,
    ) {
        let mut hidden = BTreeSet::new();
        for (id, report) in &snapshot.plugins {
            // Problems of the file itself were logged when it was loaded.
            let candidate = candidates.get(id);
            let problems = report.problems.iter().filter(|problem| {
                !candidate.is_some_and(|candidate| has_problem(candidate, problem))
            });
            for problem in problems {
                if !self.hidden.contains(problem) {
                    tracing::warn!(plugin = id, "{problem}");
                }
                hidden.insert(problem.clone());
            }
        }
        self.hidden = hidden;
    }
}

/// Returns whether a problem is one of the plugin's own files.
fn has_problem(candidate: &PluginState, problem: &String) -> bool {
    let files = candidate
        .plugin
        .iter()
        .flat_map(|plugin| &plugin.files.remarks);
    candidate
        .problem
        .iter()
        .chain(&candidate.remarks)
        .chain(files)
        .any(|known| known == problem)
}
