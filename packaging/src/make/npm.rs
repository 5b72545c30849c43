//! The packages for npm. The launcher `toolbay` depends on one package per platform, each of which
//! contains the program. npm installs the one whose `os` and `cpu` match. No script runs during
//! installation, and nothing else is downloaded.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};
use serde_json::{Map, Value, json};
use toolbay_testkit::command;

use crate::content::copy;
use crate::kit::Kit;
use crate::machine::{MACHINES, Machine};
use crate::release::{
    AUTHORS, DESCRIPTION, HOMEPAGE, LICENSE, NAME, REGISTRY_NAME, Release, SUMMARY,
};

/// The launcher.
const LAUNCHER: &str = include_str!("../../npm/toolbay.js");

/// The oldest supported Node.js.
const NODE: &str = ">=20";

pub(crate) fn make(kit: &Kit) -> Result<Vec<PathBuf>> {
    let work = kit.work("npm")?;
    let machine = kit.program.machine;
    let platform = work.join(machine.npm);
    copy(kit.content.lean(), &platform)?;
    describe(&platform, &of_platform(&kit.release, machine))?;
    fs::write(platform.join("README.md"), about_platform(machine))?;

    let launcher = work.join(NAME);
    fs::create_dir_all(launcher.join("bin"))?;
    fs::write(launcher.join("bin/toolbay.js"), LAUNCHER)?;
    describe(&launcher, &of_launcher(&kit.release))?;
    for text in ["README.md", "LICENSE-APACHE", "LICENSE-MIT"] {
        fs::copy(kit.root.join(text), launcher.join(text))
            .with_context(|| format!("failed to copy {text}"))?;
    }
    Ok(vec![pack(&platform, &kit.out)?, pack(&launcher, &kit.out)?])
}

/// Returns the name of the package for a machine.
pub(crate) fn platform_name(machine: Machine) -> String {
    format!("@{NAME}/linux-{}", machine.npm)
}

fn describe(folder: &Path, manifest: &Value) -> Result<()> {
    let text = serde_json::to_string_pretty(manifest)? + "\n";
    fs::write(folder.join("package.json"), text).context("failed to write package.json")
}

/// Returns the fields that both kinds of `package.json` contain.
fn common(release: &Release, name: &str, description: &str) -> Value {
    json!({
        "name": name,
        "version": release.version,
        "description": description,
        "license": LICENSE,
        "author": AUTHORS,
        "homepage": HOMEPAGE,
    })
}

fn merged(mut one: Value, other: Value) -> Value {
    if let (Some(one), Value::Object(other)) = (one.as_object_mut(), other) {
        one.extend(other);
    }
    one
}

/// Returns `package.json` of the package for a machine. It omits `libc`, because the program is
/// static.
fn of_platform(release: &Release, machine: Machine) -> Value {
    let description = format!("{SUMMARY}: the program for Linux on {}", machine.rust);
    merged(
        common(release, &platform_name(machine), &description),
        json!({
            "os": ["linux"],
            "cpu": [machine.npm],
            "files": ["bin", "share"],
            // Package managers that store packages in archives must unpack this one.
            "preferUnplugged": true,
        }),
    )
}

/// Returns `package.json` of the launcher.
fn of_launcher(release: &Release) -> Value {
    let platforms: Map<String, Value> = MACHINES
        .into_iter()
        .map(|machine| (platform_name(machine), json!(release.version)))
        .collect();
    merged(
        common(release, NAME, &format!("{SUMMARY}. {DESCRIPTION}")),
        json!({
            "mcpName": REGISTRY_NAME,
            "keywords": ["mcp", "model-context-protocol", "webassembly", "wasm", "sandbox"],
            "bin": {NAME: "bin/toolbay.js"},
            "files": ["bin"],
            "engines": {"node": NODE},
            "optionalDependencies": platforms,
        }),
    )
}

fn about_platform(machine: Machine) -> String {
    format!(
        "# {}\n\nThe program of [{NAME}](https://www.npmjs.com/package/{NAME}) for Linux on {}. Install `{NAME}`, which \
         depends on this package.\n",
        platform_name(machine),
        machine.rust
    )
}

fn pack(folder: &Path, out: &Path) -> Result<PathBuf> {
    let mut npm = Command::new("npm");
    npm.args(["pack", "--json", "--ignore-scripts", "--pack-destination"])
        .arg(out)
        .current_dir(folder);
    let told: Value =
        serde_json::from_str(&command::output(&mut npm).context("the packages need npm")?)?;
    // Old versions print a list, new ones a map by name.
    let packed = told.get(0).or_else(|| told.as_object()?.values().next());
    let name = packed
        .and_then(|packed| packed.get("filename")?.as_str())
        .context("npm told no file")?;
    // Some versions print the name with its scope.
    let name = name.trim_start_matches('@').replace('/', "-");
    Ok(out.join(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn release() -> Release {
        Release {
            version: "1.2.3".into(),
            time: 0,
            date: String::new(),
            downloads: String::new(),
        }
    }

    #[test]
    fn the_launcher_knows_each_platform_and_depends_on_exactly_this_version() {
        let launcher = of_launcher(&release());
        for machine in MACHINES {
            let name = platform_name(machine);
            assert!(
                LAUNCHER.contains(&format!("\"linux {}\": \"{name}\"", machine.npm)),
                "{name}"
            );
            assert_eq!(launcher["optionalDependencies"][&name], "1.2.3");
            assert_eq!(of_platform(&release(), machine)["name"], name);
        }
        assert_eq!(launcher["bin"]["toolbay"], "bin/toolbay.js");
        assert!(launcher.get("scripts").is_none());
    }
}
