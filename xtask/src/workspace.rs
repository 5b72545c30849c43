//! What cargo knows of the workspace: where things are, and which crates there are.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::command;

/// The host's crate.
pub(crate) const HOST: &str = "toolbay";

/// The integration tests' binary.
pub(crate) const IT: &str = "it";

/// The workspace as it is checked out.
pub(crate) struct Workspace {
    /// Where `Cargo.toml` is.
    pub(crate) root: PathBuf,
    /// Where cargo builds to.
    pub(crate) target: PathBuf,
    /// Its crates.
    pub(crate) packages: Vec<Package>,
}

/// One crate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Package {
    /// Its name.
    pub(crate) name: String,
    /// Where its `Cargo.toml` is, seen from the root.
    pub(crate) folder: PathBuf,
    /// Its integration tests.
    pub(crate) tests: Vec<String>,
}

impl Workspace {
    /// Asks cargo.
    pub(crate) fn load() -> Result<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("xtask is not in a workspace")?;
        let text = command::output(command::cargo(root).args(["metadata", "--no-deps", "--format-version", "1"]))?;
        Self::parse(&text).context("failed to read what `cargo metadata` wrote")
    }

    fn parse(text: &str) -> Result<Self> {
        let metadata: Value = serde_json::from_str(text)?;
        let root = path(&metadata, "workspace_root")?;
        let target = path(&metadata, "target_directory")?;
        let packages = array(&metadata, "packages")?.iter().map(|package| Package::parse(package, &root));
        let packages = packages.collect::<Result<_>>()?;
        Ok(Self { root, target, packages })
    }

    /// The sample plugins.
    pub(crate) fn plugins(&self) -> impl Iterator<Item = &Package> {
        self.directly_in("plugins")
    }

    /// The plugins that tests use. They are WebAssembly and nothing else.
    pub(crate) fn guests(&self) -> impl Iterator<Item = &Package> {
        self.directly_in("tests/guests")
    }

    /// What is built natively beside the host.
    pub(crate) fn companions(&self) -> impl Iterator<Item = &Package> {
        self.packages.iter().filter(|package| package.name != HOST && !self.guests().any(|guest| guest == *package))
    }

    fn directly_in(&self, folder: &'static str) -> impl Iterator<Item = &Package> {
        self.packages.iter().filter(move |package| package.folder.parent() == Some(Path::new(folder)))
    }
}

impl Package {
    fn parse(package: &Value, root: &Path) -> Result<Self> {
        let manifest = path(package, "manifest_path")?;
        let folder = manifest.parent().unwrap_or(root);
        let mut tests = Vec::new();
        for target in array(package, "targets")? {
            if array(target, "kind")?.iter().any(|kind| kind == "test") {
                tests.push(string(target, "name")?.to_owned());
            }
        }
        Ok(Self {
            name: string(package, "name")?.to_owned(),
            folder: folder.strip_prefix(root).unwrap_or(folder).to_owned(),
            tests,
        })
    }

    /// What its plugin is called: its folder's name.
    pub(crate) fn id(&self) -> String {
        self.folder.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }
}

fn path(value: &Value, key: &str) -> Result<PathBuf> {
    string(value, key).map(PathBuf::from)
}

fn string<'a>(value: &'a Value, key: &str) -> Result<&'a str> {
    value.get(key).and_then(Value::as_str).with_context(|| format!("no {key}"))
}

fn array<'a>(value: &'a Value, key: &str) -> Result<&'a [Value]> {
    value.get(key).and_then(Value::as_array).map(Vec::as_slice).with_context(|| format!("no {key}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names<'a>(packages: impl Iterator<Item = &'a Package>) -> Vec<&'a str> {
        packages.map(|package| package.name.as_str()).collect()
    }

    #[test]
    fn crates_are_sorted_by_where_they_are() {
        let package = |name: &str, folder: &str| {
            serde_json::json!({"name": name, "manifest_path": format!("/w/{folder}/Cargo.toml"), "targets": [
                {"kind": ["lib"], "name": name}, {"kind": ["test"], "name": "ui"},
            ]})
        };
        let packages = [package("toolbay", "host"), package("qr", "plugins/qr"), package("bad", "tests/guests/bad")];
        let metadata = serde_json::json!({"workspace_root": "/w", "target_directory": "/t", "packages": packages});
        let workspace = Workspace::parse(&metadata.to_string()).unwrap();
        assert_eq!(workspace.target, Path::new("/t"));
        assert_eq!(names(workspace.plugins()), ["qr"]);
        assert_eq!(names(workspace.guests()), ["bad"]);
        assert_eq!(names(workspace.companions()), ["qr"]);
        assert_eq!(workspace.packages[0].tests, ["ui"]);
        assert_eq!(workspace.packages[2].id(), "bad");
    }

    #[test]
    fn this_workspace_has_a_host_and_plugins() {
        let workspace = Workspace::load().unwrap();
        assert!(workspace.packages.iter().any(|package| package.name == HOST));
        assert!(workspace.plugins().count() >= 5);
    }
}
