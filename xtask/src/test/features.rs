//! No dependency is compiled twice: once for the server alone, and once more for the tests, with other features.
//!
//! Cargo gives a dependency the features that all selected crates want of it together. Tests select more than a build of
//! the server does, so the server's crate names the features that only others would ask for.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, bail};
use toolbay_testkit::command;
use toolbay_testkit::workspace::{HOST, Workspace};

use super::{Context, natives};

/// By package and version: the sets of features that it is compiled with.
type Compiled = BTreeMap<String, BTreeSet<String>>;

pub(super) fn run(context: &mut Context<'_>) -> Result<()> {
    let workspace = context.workspace;
    let built = compiled(workspace, &["--package", HOST, "--edges", "normal,build"])?;
    let mut select = natives(workspace);
    select.extend(["--edges", "normal,build,dev"]);
    let twice = twice(&built, &compiled(workspace, &select)?);
    if twice.is_empty() {
        context.tally.passed += 1;
        return Ok(());
    }
    bail!(
        "compiled once for `cargo build -p {HOST}` and once more for the tests; name the missing features in the \
         manifest of {HOST} (under build-dependencies for what macros use):\n  {}",
        twice.join("\n  ")
    )
}

/// Asks cargo what it would compile.
fn compiled(workspace: &Workspace, select: &[&str]) -> Result<Compiled> {
    let mut cargo = command::cargo(&workspace.root);
    cargo.args(["tree", "--prefix", "none", "--format", "{p}\t{f}"]).args(select);
    Ok(parse(&command::output(&mut cargo)?))
}

fn parse(tree: &str) -> Compiled {
    let mut compiled = Compiled::new();
    for line in tree.lines() {
        let Some((package, features)) = line.split_once('\t') else { continue };
        // What is in the workspace has its path in parentheses; it is cheap.
        if let (name, None | Some("(proc-macro)")) = split_name(package) {
            let features = features.trim_end_matches(" (*)");
            compiled.entry(name.to_owned()).or_default().insert(features.to_owned());
        }
    }
    compiled
}

/// `serde_derive v1.0.0 (proc-macro)`, as its name and version, and what follows.
fn split_name(package: &str) -> (&str, Option<&str>) {
    match package.split_once(" (") {
        Some((name, _)) => (name, package.get(name.len() + 1..)),
        None => (package, None),
    }
}

/// What is built with features that the tests do not build it with.
fn twice(built: &Compiled, tested: &Compiled) -> Vec<String> {
    let differs = |(name, built): (&String, &BTreeSet<String>)| {
        let tested = tested.get(name)?;
        let alone: Vec<&str> = built.difference(tested).map(String::as_str).collect();
        let all: Vec<&str> = tested.iter().map(String::as_str).collect();
        (!alone.is_empty())
            .then(|| format!("{name}: built with [{}], tested with [{}]", alone.join("] ["), all.join("] [")))
    };
    built.iter().filter_map(differs).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_other_features_is_named() {
        let built = parse(
            "toolbay v0.1.0 (/w/host)\t\nmemchr v2.8.3\talloc,std\nserde v1.0.0\tderive (*)\nserde_derive v1.0.0 (proc-macro)\tdefault\n",
        );
        assert_eq!(built.keys().collect::<Vec<_>>(), ["memchr v2.8.3", "serde v1.0.0", "serde_derive v1.0.0"]);
        let tested = parse("memchr v2.8.3\talloc,default,std\nserde v1.0.0\tderive\nserde v1.0.0\t\ninsta v1.0.0\t");
        let expected = ["memchr v2.8.3: built with [alloc,std], tested with [alloc,default,std]"];
        assert_eq!(twice(&built, &tested), expected);
        assert!(twice(&built, &built).is_empty());
    }
}
