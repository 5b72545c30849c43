//! The boundaries of ARCHITECTURE.md, checked in the source: the dependencies that each part of the
//! code may have.

use std::fs;
use std::path::{Path, PathBuf};

/// Returns every line of the host's source with `word` in its code, as `crate/src/file: line`.
/// Tests are excluded.
fn lines_with(word: &str) -> Vec<String> {
    let host = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut found = Vec::new();
    for path in files(host) {
        let name = path.strip_prefix(host).unwrap().display().to_string();
        let source = fs::read_to_string(&path).unwrap();
        let code = source.split("#[cfg(test)]\nmod tests").next().unwrap();
        if name.starts_with("testkit/") || name.ends_with("tests.rs") {
            continue;
        }
        for line in code.lines() {
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

/// Panics with the lines outside of `allowed` that use `word`. At least one line must use the word.
fn assert_only_in(word: &str, allowed: &[&str]) {
    let uses = lines_with(word);
    assert!(
        !uses.is_empty(),
        "nothing uses {word}: the seam has another name now"
    );
    let outside: Vec<_> = uses
        .iter()
        .filter(|line| !allowed.iter().any(|place| line.starts_with(place)))
        .collect();
    assert!(
        outside.is_empty(),
        "{word} belongs to {allowed:?} alone:\n{outside:#?}"
    );
}

#[test]
fn only_the_sandbox_uses_wasmtime() {
    assert_only_in("wasmtime::", &["sandbox/"]);
    assert_only_in("wasmtime_wasi", &["sandbox/"]);
}

#[test]
fn only_the_database_uses_redb() {
    assert_only_in("redb::", &["state/"]);
}

#[test]
fn only_the_watcher_uses_notify() {
    // The notification of a supervisor ends in the same word.
    assert_only_in(
        "notify::",
        &[
            "catalog/src/folder/watcher.rs",
            "toolbay/src/cli/supervisor.rs",
        ],
    );
}

#[test]
fn only_the_protocol_crates_use_json_rpc_and_revisions() {
    // The server side and the client side do not use each other.
    assert_only_in("jsonrpc::", &["mcp/"]);
    assert_only_in("\"jsonrpc\"", &["mcp/", "guest-mcp/"]);
    assert_only_in(".features()", &["mcp/"]);
}

#[test]
fn one_function_makes_a_store() {
    assert_only_in(" Store::new(", &["sandbox/src/run/call.rs"]);
    assert_eq!(lines_with(" Store::new(").len(), 1);
}

#[test]
fn only_the_reloader_publishes() {
    assert_only_in(".publish(", &["catalog/src/publish/reloader.rs"]);
}

#[test]
fn only_the_loader_of_compiled_code_uses_unsafe_code() {
    // A test makes forbidden system calls, which needs unsafe code too.
    assert_only_in(
        "unsafe {",
        &["sandbox/src/cache/code.rs", "confine/tests/wall.rs"],
    );
    // The attribute that configures the allocator.
    assert_only_in("#[unsafe(", &["toolbay/src/main.rs"]);
    for word in ["unsafe fn", "unsafe impl", "unsafe trait", "unsafe extern"] {
        assert_eq!(lines_with(word), [""; 0], "{word}");
    }
}

/// The crates of the workspace that each crate may use: dependencies go in one direction.
const MAY_USE: [(&str, &[&str]); 26] = [
    ("model", &[]),
    ("settings", &[]),
    ("private", &[]),
    ("background", &[]),
    ("confine", &[]),
    ("socket", &[]),
    ("tls", &[]),
    ("state", &["model", "private", "background"]),
    ("schema", &["model"]),
    ("policy", &["model"]),
    ("outgoing", &["policy"]),
    ("audit", &["model", "private", "background"]),
    (
        "console",
        &["model", "lock", "private", "socket", "background"],
    ),
    ("otel", &["model", "outgoing"]),
    ("recording", &["model", "background"]),
    ("secrets", &["model", "policy"]),
    ("guest-mcp", &["model"]),
    ("bundle", &["model", "settings"]),
    ("lock", &["model", "settings"]),
    ("registry", &["model", "policy", "outgoing", "bundle"]),
    (
        "sandbox",
        &[
            "model",
            "schema",
            "policy",
            "outgoing",
            "private",
            "secrets",
            "state",
            "guest-mcp",
            "recording",
        ],
    ),
    (
        "catalog",
        &[
            "model", "settings", "private", "schema", "policy", "secrets", "lock", "sandbox",
            "confine",
        ],
    ),
    ("install", &["settings"]),
    ("mcp", &["model", "private", "socket", "tls", "background"]),
    (
        "toolbay",
        &[
            "model",
            "settings",
            "private",
            "schema",
            "policy",
            "state",
            "secrets",
            "sandbox",
            "audit",
            "bundle",
            "catalog",
            "confine",
            "console",
            "install",
            "lock",
            "mcp",
            "otel",
            "outgoing",
            "recording",
            "registry",
            "socket",
            "tls",
        ],
    ),
    ("testkit", &[]),
];

#[test]
fn crates_depend_only_on_those_below_them() {
    let host = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    for (name, allowed) in MAY_USE {
        let manifest = fs::read_to_string(host.join(name).join("Cargo.toml")).unwrap();
        let manifest: toml::Table = manifest.parse().unwrap();
        let dependencies = manifest["dependencies"].as_table().unwrap().keys();
        let ours: Vec<&str> = dependencies
            .filter_map(|name| name.strip_prefix("toolbay-"))
            .collect();
        assert!(
            ours.iter().all(|used| allowed.contains(used)),
            "{name} uses {ours:?}, and may use {allowed:?}"
        );
    }
    let crates = fs::read_dir(host)
        .unwrap()
        .filter(|entry| entry.as_ref().unwrap().path().is_dir())
        .count();
    assert_eq!(crates, MAY_USE.len(), "a crate without a rule");
}

/// Returns the root of the repository.
fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .unwrap()
}

#[test]
fn the_table_of_crates_has_the_rules_that_are_checked() {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let table = text
        .lines()
        .skip_while(|line| *line != "| crate | purpose | may use |")
        .skip(2);
    let rows: Vec<(&str, Vec<&str>)> = table
        .take_while(|line| line.starts_with('|'))
        .map(|line| {
            let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
            let used = match cells[2] {
                "no other crate" | "development only" => Vec::new(),
                names => names.split(", ").collect(),
            };
            (cells[0].trim_matches('`'), used)
        })
        .collect();
    assert_eq!(rows.len(), MAY_USE.len());
    for ((name, used), (checked, allowed)) in rows.into_iter().zip(MAY_USE) {
        assert_eq!(name, checked);
        assert!(
            used == ["all"] || used == allowed,
            "{name}: ARCHITECTURE.md has {used:?}, and checked is {allowed:?}"
        );
    }
}

/// Returns the texts and targets of the links to files in a page: `[text](target)`.
fn links(page: &str) -> Vec<(&str, &str)> {
    let links = page
        .split("](")
        .zip(page.split("](").skip(1))
        .filter_map(|(before, after)| {
            let text = before.rsplit_once('[')?.1;
            let target = after.split_once(')')?.0;
            Some((text, target.split('#').next().unwrap_or_default()))
        });
    links
        .filter(|(_, target)| !target.is_empty() && !target.starts_with("http"))
        .collect()
}

#[test]
fn every_link_of_the_pages_for_developers_leads_to_a_file_that_has_its_type() {
    let mut types = 0;
    for page in ["ARCHITECTURE.md", "CONTRIBUTING.md"] {
        let text = fs::read_to_string(root().join(page)).unwrap();
        for (text, target) in links(&text) {
            let file = fs::read_to_string(root().join(target));
            let file = file.unwrap_or_else(|error| panic!("{page} links to {target}: {error}"));
            let Some(name) = text
                .strip_prefix('`')
                .and_then(|text| text.strip_suffix('`'))
            else {
                continue;
            };
            let is_defined = ["struct", "enum", "trait"].iter().any(|kind| {
                let definition = format!("{kind} {name}");
                file.match_indices(&definition).any(|(at, _)| {
                    let next = file[at + definition.len()..].chars().next();
                    next.is_none_or(|char| !char.is_alphanumeric() && char != '_')
                })
            });
            assert!(is_defined, "{page}: {target} has no type {name}");
            types += 1;
        }
    }
    assert!(types > 100, "{types} types");
    assert_eq!(
        links("[`A`](b.rs), [c](https://c) [d](e.md#f) [g](#h)"),
        [("`A`", "b.rs"), ("d", "e.md")]
    );
}
