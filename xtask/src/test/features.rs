//! Checks that no dependency is compiled twice, once for the server and once for the tests with
//! other features.
//!
//! Cargo enables all features of a dependency that a selected crate requires. The tests select more
//! crates than a build of the server. Therefore, the server's crate lists the features that only
//! the other crates require.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;
use toolbay_testkit::command;
use toolbay_testkit::workspace::{CargoWorkspace, HOST_PACKAGE};

use super::context::StepContext;
use super::select::select_native;

/// The compiled variants of each unit.
type UnitVariants = BTreeMap<CompilationUnit, BTreeSet<UnitVariant>>;

/// A separately compiled unit of a dependency.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct CompilationUnit {
    /// The name and version of the package.
    package: String,
    /// The part of the package (the library, the build script, or the run of the build script) and
    /// the target platform.
    part: String,
}

/// The features and profile with which a unit is compiled.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct UnitVariant {
    features: String,
    /// The profile without its name, as cargo prints it.
    profile: String,
}

pub(super) fn run(context: &mut StepContext<'_>) -> Result<()> {
    let workspace = context.workspace;
    let built = read_unit_graph(
        workspace,
        &["build", "--package", HOST_PACKAGE, "--bin", HOST_PACKAGE],
    )?;
    let mut tests = vec!["test"];
    tests.extend(select_native(workspace));
    let twice = find_duplicates(&built, &read_unit_graph(workspace, &tests)?);
    if twice.is_empty() {
        context.tally.passed += 1;
        return Ok(());
    }
    bail!(
        "these are compiled for `cargo build -p {HOST_PACKAGE}` and again for the tests; name the missing features in the \
         manifest of {HOST_PACKAGE} (under build-dependencies for what macros and build scripts use):\n  {}",
        twice.join("\n  ")
    )
}

/// Returns the units that cargo would compile for a command.
fn read_unit_graph(workspace: &CargoWorkspace, args: &[&str]) -> Result<UnitVariants> {
    let mut cargo = command::cargo(&workspace.root);
    // Without this variable, only a nightly cargo prints the unit graph. The command compiles
    // nothing.
    cargo
        .env("RUSTC_BOOTSTRAP", "1")
        .args(args)
        .args(["--unit-graph", "-Z", "unstable-options"]);
    parse_unit_graph(&command::output(&mut cargo)?)
        .context("failed to read what cargo would compile")
}

fn parse_unit_graph(graph: &str) -> Result<UnitVariants> {
    let graph: Value = serde_json::from_str(graph)?;
    ensure!(
        graph.get("version").is_some_and(|version| version == 1),
        "the graph is of another version of cargo"
    );
    let units = graph
        .get("units")
        .and_then(Value::as_array)
        .context("the graph has no units")?;
    let mut compiled = UnitVariants::new();
    for unit in units {
        let text = |key: &str| unit.get(key).and_then(Value::as_str).unwrap_or_default();
        // Crates of the workspace are fast to compile, and intentionally differ between the build
        // and the tests.
        let Some((_, package)) = text("pkg_id")
            .strip_prefix("registry+")
            .and_then(|id| id.split_once('#'))
        else {
            continue;
        };
        let kind = unit
            .pointer("/target/kind")
            .map(Value::to_string)
            .unwrap_or_default();
        let part = format!("{kind} {} {}", text("mode"), text("platform"));
        let features = unit
            .get("features")
            .and_then(Value::as_array)
            .into_iter()
            .flatten();
        let features: Vec<&str> = features.filter_map(Value::as_str).collect();
        let mut profile = unit.get("profile").cloned().unwrap_or_default();
        if let Some(profile) = profile.as_object_mut() {
            // The profile of the tests has a different name and the same content.
            profile.remove("name");
        }
        let way = UnitVariant {
            features: features.join(","),
            profile: profile.to_string(),
        };
        compiled
            .entry(CompilationUnit {
                package: package.to_owned(),
                part,
            })
            .or_default()
            .insert(way);
    }
    ensure!(!compiled.is_empty(), "the graph has no dependency");
    Ok(compiled)
}

/// Returns the dependencies that the tests compile differently, one line for each package and
/// difference.
fn find_duplicates(built: &UnitVariants, tested: &UnitVariants) -> Vec<String> {
    let mut lines = BTreeSet::new();
    for (unit, built) in built {
        let Some(tested) = tested.get(unit) else {
            continue;
        };
        for way in built.difference(tested) {
            let features = |ways: &BTreeSet<UnitVariant>| {
                ways.iter()
                    .map(|way| format!("[{}]", way.features))
                    .collect::<BTreeSet<_>>()
                    .into_iter()
                    .collect::<Vec<_>>()
            };
            let others = features(tested).join(" ");
            lines.insert(format!(
                "{}: built with [{}], tested with {others}",
                unit.package, way.features
            ));
        }
    }
    lines.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn unit(id: &str, profile: &str, features: &[&str]) -> Value {
        let profile = json!({"name": profile, "opt_level": "3"});
        json!({"pkg_id": id, "target": {"kind": ["lib"]}, "mode": "build", "platform": null, "profile": profile,
            "features": features})
    }

    fn graph(units: &[Value]) -> UnitVariants {
        parse_unit_graph(&json!({"version": 1, "units": units}).to_string()).unwrap()
    }

    #[test]
    fn what_has_other_features_is_named() {
        let (memchr, serde) = (
            "registry+https://r#memchr@2.8.3",
            "registry+https://r#serde@1.0.0",
        );
        let ours = unit("path+file:///w/host#toolbay@0.1.0", "dev", &[]);
        let built = graph(&[
            unit(memchr, "dev", &["std"]),
            unit(serde, "dev", &["derive"]),
            ours,
        ]);
        assert_eq!(built.len(), 2);
        let tested = [
            unit(memchr, "test", &["default", "std"]),
            unit(serde, "test", &["derive"]),
            unit(serde, "test", &[]),
        ];
        assert_eq!(
            find_duplicates(&built, &graph(&tested)),
            ["memchr@2.8.3: built with [std], tested with [default,std]"]
        );
        assert!(find_duplicates(&built, &built).is_empty());
    }

    #[test]
    fn a_graph_that_cannot_be_read_is_no_success() {
        for graph in [
            "",
            "{}",
            r#"{"version":1,"units":[]}"#,
            r#"{"version":2,"units":[]}"#,
        ] {
            assert!(parse_unit_graph(graph).is_err(), "{graph}");
        }
    }
}
