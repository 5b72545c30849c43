//! The paths and crates of the workspace, from `cargo metadata`.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::command;

/// The name of the crate with the server executable.
pub const HOST_PACKAGE: &str = "toolbay";

/// The cargo workspace of this repository.
#[derive(Clone, Debug)]
pub struct CargoWorkspace {
    /// The folder that contains the workspace's `Cargo.toml`.
    pub root: PathBuf,
    /// Cargo's target folder.
    pub target: PathBuf,
    /// The crates of the workspace.
    pub packages: Vec<WorkspacePackage>,
}

/// A crate of the workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkspacePackage {
    /// The crate's name.
    pub name: String,
    /// The folder that contains the crate's `Cargo.toml`, relative to the root.
    pub folder: PathBuf,
}

/// Returns the path of the workspace when this crate was compiled.
pub fn root() -> &'static Path {
    // This crate is `host/testkit`.
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    folder.ancestors().nth(2).unwrap_or(folder)
}

impl CargoWorkspace {
    /// Runs `cargo metadata`.
    pub fn load() -> Result<Self> {
        let text = command::output(command::cargo(root()).args([
            "metadata",
            "--no-deps",
            "--format-version",
            "1",
        ]))?;
        Self::parse(&text).context("failed to read what `cargo metadata` wrote")
    }

    fn parse(text: &str) -> Result<Self> {
        let metadata: Value = serde_json::from_str(text)?;
        let root = path(&metadata, "workspace_root")?;
        let target = path(&metadata, "target_directory")?;
        let packages = array(&metadata, "packages")?
            .iter()
            .map(|package| WorkspacePackage::parse(package, &root));
        let packages = packages.collect::<Result<_>>()?;
        Ok(Self {
            root,
            target,
            packages,
        })
    }

    /// Returns the sample plugins.
    pub fn plugins(&self) -> impl Iterator<Item = &WorkspacePackage> {
        self.packages_in("plugins")
    }

    /// Returns the examples, which demonstrate grants.
    pub fn examples(&self) -> impl Iterator<Item = &WorkspacePackage> {
        self.packages_in("examples")
    }

    /// Returns the plugins that tests use. They are compiled only to WebAssembly.
    pub fn guests(&self) -> impl Iterator<Item = &WorkspacePackage> {
        self.packages_in("tests/guests")
    }

    /// Returns the crates that are compiled for this machine: all except the guests.
    pub fn native_packages(&self) -> impl Iterator<Item = &WorkspacePackage> {
        self.packages
            .iter()
            .filter(|package| !self.guests().any(|guest| guest == *package))
    }

    fn packages_in(&self, folder: &'static str) -> impl Iterator<Item = &WorkspacePackage> {
        self.packages
            .iter()
            .filter(move |package| package.folder.parent() == Some(Path::new(folder)))
    }
}

impl WorkspacePackage {
    fn parse(package: &Value, root: &Path) -> Result<Self> {
        let manifest = path(package, "manifest_path")?;
        let folder = manifest.parent().unwrap_or(root);
        Ok(Self {
            name: string(package, "name")?.to_owned(),
            folder: folder.strip_prefix(root).unwrap_or(folder).to_owned(),
        })
    }

    /// Returns the id of the crate's plugin, which is the name of the crate's folder.
    pub fn plugin_id(&self) -> String {
        self.folder
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned()
    }
}

fn path(value: &Value, key: &str) -> Result<PathBuf> {
    string(value, key).map(PathBuf::from)
}

fn string<'a>(value: &'a Value, key: &str) -> Result<&'a str> {
    value
        .get(key)
        .and_then(Value::as_str)
        .with_context(|| format!("no {key}"))
}

fn array<'a>(value: &'a Value, key: &str) -> Result<&'a [Value]> {
    value
        .get(key)
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .with_context(|| format!("no {key}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names<'a>(packages: impl Iterator<Item = &'a WorkspacePackage>) -> Vec<&'a str> {
        packages.map(|package| package.name.as_str()).collect()
    }

    #[test]
    fn crates_are_sorted_by_kind() {
        let package = |name: &str, folder: &str| serde_json::json!({"name": name, "manifest_path": format!("/w/{folder}/Cargo.toml")});
        let packages = [
            package("toolbay", "host"),
            package("qr", "plugins/qr"),
            package("bad", "tests/guests/bad"),
        ];
        let metadata = serde_json::json!({"workspace_root": "/w", "target_directory": "/t", "packages": packages});
        let workspace = CargoWorkspace::parse(&metadata.to_string()).unwrap();
        assert_eq!(workspace.target, Path::new("/t"));
        assert_eq!(names(workspace.plugins()), ["qr"]);
        assert_eq!(names(workspace.guests()), ["bad"]);
        assert_eq!(names(workspace.native_packages()), ["toolbay", "qr"]);
        assert_eq!(workspace.packages[2].plugin_id(), "bad");
    }

    #[test]
    fn this_workspace_has_host_crates_and_plugins() {
        let workspace = CargoWorkspace::load().unwrap();
        assert!(
            workspace
                .packages
                .iter()
                .any(|package| package.name == HOST_PACKAGE)
        );
        assert!(workspace.plugins().count() >= 5);
    }
}
