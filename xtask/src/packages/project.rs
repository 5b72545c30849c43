//! A plugin project with packages: its installation, its build and its reference program.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;
use toolbay_testkit::command;
use toolbay_testkit::guests::run_once;

use super::lists::LISTS;
use super::row::{PackageRegistry, PackageRow};
use super::{npm, pypi};
use crate::languages::project::{BuildEnvironment, PluginProject};

/// Packages of `PyPI` that have no wheel, so that their own scripts build one. The scripts of others
/// do not run.
const NO_WHEELS: &str = "langdetect";

/// The values of the reference program by the ids of rows, or errors.
pub(super) type ReferenceValues = BTreeMap<String, Result<Value, String>>;

/// A project of the template, with installed packages.
pub(super) struct PackageProject {
    registry: PackageRegistry,
    project: PluginProject,
}

impl PackageProject {
    /// Creates the project in `folder`, and installs the packages of `rows`. The installation of an
    /// earlier run is used if the versions are the same.
    pub(super) fn install(
        root: &Path,
        server: &Path,
        machine: &BuildEnvironment,
        folder: &Path,
        rows: &[&PackageRow],
    ) -> Result<Self> {
        let registry = rows.first().context("no packages")?.registry;
        let mut project = PluginProject::create(server, folder, registry.language(), None)?;
        if let Some(missing) = machine.install_missing(&project.manifest.requires)? {
            anyhow::bail!("{missing}");
        }
        let lock = root.join(LISTS).join(lock_file(registry));
        let inputs = match registry {
            PackageRegistry::Npm => {
                let manifest = npm::require_packages(folder, rows)?;
                let sdk = fs::read_to_string(folder.join("toolbay/package.json"))?;
                let locked = fs::read_to_string(&lock).unwrap_or_default();
                if !locked.is_empty() {
                    fs::write(folder.join("package-lock.json"), &locked)?;
                }
                // The packages' own scripts download or compile native code.
                for line in &mut project.manifest.setup {
                    *line += " --ignore-scripts --omit-lockfile-registry-resolved --install-strategy=hoisted";
                }
                format!("{manifest}{sdk}{locked}")
            }
            PackageRegistry::Pypi => {
                let requirements = pypi::require_packages(folder, rows)?;
                let constraints = fs::read_to_string(&lock).unwrap_or_default();
                fs::write(folder.join("constraints.txt"), &constraints)?;
                for line in &mut project.manifest.setup {
                    if line.contains("pip install") {
                        *line += " --only-binary=:all: -c constraints.txt --no-binary=";
                        *line += NO_WHEELS;
                    }
                }
                format!("{requirements}{constraints}")
            }
        };
        let installed = folder.join(match registry {
            PackageRegistry::Npm => "node_modules",
            PackageRegistry::Pypi => ".venv",
        });
        let stamp = installed.join("toolbay-stamp");
        run_once(&stamp, &inputs, || {
            // npm removes packages that are no longer required. pip does not, and neither notices
            // that an earlier installation was interrupted, which has no stamp.
            if registry == PackageRegistry::Npm && stamp.exists() {
                fs::remove_file(&stamp)?;
            } else if installed.exists() {
                fs::remove_dir_all(&installed)?;
            }
            println!("Installing {} packages of {}", rows.len(), registry.title());
            for line in &project.manifest.setup {
                machine.run_in_project(&project, line)?;
            }
            Ok(())
        })?;
        // Read again: the settings of the build have changed.
        let project = PluginProject::read(folder)?;
        Ok(Self { registry, project })
    }

    /// Builds a plugin with one tool for each row. Returns the path of the plugin, or the error of
    /// the build as an author sees it.
    pub(super) fn build(
        &self,
        machine: &BuildEnvironment,
        rows: &[&PackageRow],
    ) -> Result<PathBuf, String> {
        let folder = &self.project.folder;
        let write = match self.registry {
            PackageRegistry::Npm => npm::write_sources,
            PackageRegistry::Pypi => pypi::write_sources,
        };
        write(folder, rows).map_err(|error| format!("{error:#}"))?;
        let output = folder.join(&self.project.manifest.output);
        if output.exists() {
            fs::remove_file(&output).map_err(|error| error.to_string())?;
        }
        for line in &self.project.manifest.build {
            machine
                .run_in_project(&self.project, line)
                .map_err(|error| {
                    // The first line has the exit status.
                    let text = error.root_cause().to_string();
                    text.split_once('\n')
                        .map_or_else(|| text.clone(), |(_, output)| output.to_owned())
                })?;
        }
        Ok(output)
    }

    /// Makes the same calls with Node or `CPython`. `bases` has the argument of each call, by the id
    /// of its row.
    pub(super) fn run_reference(
        &self,
        bases: &BTreeMap<String, String>,
    ) -> Result<ReferenceValues> {
        let folder = &self.project.folder;
        let mut program = match self.registry {
            PackageRegistry::Npm => {
                let mut node = Command::new("node");
                node.args(["--no-warnings", npm::REFERENCE]);
                // The build replaces this variable.
                node.env("NODE_ENV", "production");
                node
            }
            PackageRegistry::Pypi => {
                let mut python = Command::new(folder.join(".venv/bin/python"));
                python.args(["-B", "-W", "ignore", pypi::REFERENCE]);
                python.env("PYTHONPATH", folder.join("src"));
                python
            }
        };
        // A plugin has no time zone and no locale.
        program
            .arg(serde_json::to_string(bases)?)
            .current_dir(folder)
            .env("TZ", "UTC")
            .env("LC_ALL", "C.UTF-8");
        let text = command::output(&mut program)?;
        text.lines()
            .filter_map(|line| line.strip_prefix("toolbay-result "))
            .map(parse_value)
            .collect()
    }
}

/// Parses a line of the reference program.
fn parse_value(line: &str) -> Result<(String, Result<Value, String>)> {
    let mut line: Value =
        serde_json::from_str(line).with_context(|| format!("not JSON: {line}"))?;
    let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
    let id = text(line.get("id"));
    let value = line.get_mut("value").map(Value::take);
    Ok((id, value.ok_or_else(|| text(line.get("error")))))
}

/// Returns the name of the file with the versions of all packages, also of those that the listed
/// packages need.
fn lock_file(registry: PackageRegistry) -> &'static str {
    match registry {
        PackageRegistry::Npm => "package-lock.json",
        PackageRegistry::Pypi => "constraints.txt",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_and_errors_are_read() {
        let value = parse_value(r#"{"id": "a", "value": [1]}"#).unwrap();
        assert_eq!(value, ("a".to_owned(), Ok(json!([1]))));
        let null = parse_value(r#"{"id": "a", "value": null}"#).unwrap();
        assert_eq!(null.1, Ok(Value::Null));
        let error = parse_value(r#"{"id": "b", "error": "no"}"#).unwrap();
        assert_eq!(error, ("b".to_owned(), Err("no".to_owned())));
        assert!(parse_value("{").is_err());
    }
}
