//! Checks that no crate of the workspace contains a dependency cycle.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by it"
)]

use std::path::PathBuf;
use std::process::Command;

use circles::{Unit, circles};
use serde_json::Value;

/// Returns the root files of the workspace's crates with the names of the crates, without tests.
fn roots() -> Vec<(String, PathBuf)> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo
        .args(["metadata", "--no-deps", "--format-version", "1"])
        .current_dir(env!("CARGO_MANIFEST_DIR"));
    let output = cargo.output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut roots = Vec::new();
    for package in metadata["packages"].as_array().unwrap() {
        for target in package["targets"].as_array().unwrap() {
            let is_of = |kind: &Value| {
                ["test", "bench", "example", "custom-build"]
                    .iter()
                    .any(|other| kind == other)
            };
            if !target["kind"].as_array().unwrap().iter().any(is_of) {
                let name = package["name"].as_str().unwrap().to_owned();
                roots.push((name, target["src_path"].as_str().unwrap().into()));
            }
        }
    }
    roots
}

#[test]
fn no_crate_has_a_circle() {
    let roots = roots();
    assert!(roots.len() > 10, "{roots:?}");
    let mut said = Vec::new();
    for (name, root) in &roots {
        for unit in [Unit::File, Unit::Folder] {
            said.extend(
                circles(root, unit)
                    .unwrap()
                    .into_iter()
                    .map(|circle| format!("{name}: {circle}")),
            );
        }
    }
    assert!(said.is_empty(), "\n{}", said.join("\n\n"));
}
