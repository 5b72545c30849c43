//! The files that plugins can use, and quotas for them.

mod callers;
mod denied;
pub(crate) mod escapes;
mod quota;
mod scratch;

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::support::StdioServer;

/// Returns the arguments of the tool `file_steps`: each step is a line of words.
fn steps(steps: &[&str]) -> Value {
    let words = |step: &&str| step.split(' ').map(str::to_owned).collect::<Vec<_>>();
    json!({ "steps": steps.iter().map(words).collect::<Vec<_>>() })
}

/// The outcome of a step that exceeds the quota.
const FULL: &str = "full";

/// Returns whether a step reports that there is no space. The C library of WASI maps every error of
/// a stream to an I/O error.
fn is_full(said: &str) -> bool {
    said.starts_with("StorageFull: ") || said.ends_with("I/O error (os error 29)")
}

/// Runs these steps in one call and compares their outcomes: `ok`, the text that is read, [`FULL`],
/// or the kind of an error.
fn run_steps(server: &mut StdioServer, expected: &[(&str, &str)]) {
    let wanted: Vec<&str> = expected.iter().map(|(step, _)| *step).collect();
    let said = server.text("file_steps", steps(&wanted));
    assert_eq!(said.lines().count(), expected.len(), "{said}");
    for ((step, outcome), said) in expected.iter().zip(said.lines()) {
        let fits = said == *outcome
            || said.starts_with(&format!("{outcome}: "))
            || (*outcome == FULL && is_full(said));
        assert!(fits, "{step}: expected {outcome}, not {said}");
    }
}

/// Returns the number of bytes and entries of a folder, at all depths.
fn folder_usage(folder: &Path) -> (u64, usize) {
    let mut all = (0, 0);
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let found = entry.metadata().unwrap();
        all.1 += 1;
        if found.is_dir() {
            let (bytes, entries) = folder_usage(&entry.path());
            all = (all.0 + bytes, all.1 + entries);
        } else if found.is_file() {
            all.0 += found.len();
        }
    }
    all
}
