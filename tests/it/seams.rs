//! The seams of ARCHITECTURE.md, read off the source: who may know what.

use std::fs;
use std::path::{Path, PathBuf};

/// Every line of the host's source that has `word` in its code, as `file: line`.
fn uses(word: &str) -> Vec<String> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    for path in files(&source) {
        let name = path.strip_prefix(&source).unwrap().display().to_string();
        for line in fs::read_to_string(&path).unwrap().lines() {
            let code = line.split("//").next().unwrap_or_default();
            if code.contains(word) {
                found.push(format!("{name}: {}", line.trim()));
            }
        }
    }
    found
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Fails with the lines outside of `allowed` that use `word`; the word must be in use at all.
fn only_in(word: &str, allowed: &[&str]) {
    let uses = uses(word);
    assert!(!uses.is_empty(), "nothing uses {word}: the seam has another name now");
    let outside: Vec<_> = uses.iter().filter(|line| !allowed.iter().any(|place| line.starts_with(place))).collect();
    assert!(outside.is_empty(), "{word} belongs to {allowed:?} alone:\n{outside:#?}");
}

#[test]
fn the_sandbox_alone_knows_wasmtime() {
    only_in("wasmtime::", &["sandbox/", "sandbox.rs"]);
    only_in("wasmtime_wasi", &["sandbox/"]);
}

#[test]
fn the_watcher_alone_knows_notify() {
    only_in("notify_debouncer_full::", &["plugin/watcher.rs"]);
}

#[test]
fn the_protocol_alone_knows_json_rpc() {
    only_in("jsonrpc", &["mcp/", "mcp.rs"]);
}

#[test]
fn one_function_makes_a_store() {
    only_in("Store::new(", &["sandbox/call.rs"]);
    assert_eq!(uses("Store::new(").len(), 1);
}

#[test]
fn only_the_reloader_publishes() {
    only_in(".publish(", &["plugin/reloader.rs", "catalog.rs", "fuzz/", "mcp/fuzz.rs"]);
}

#[test]
fn unsafe_code_is_where_compiled_code_is_opened() {
    only_in("unsafe {", &["sandbox/store.rs"]);
}
