//! Builds the server and the plugins with cargo, and copies the plugins to folders that a server
//! can serve.

mod progress;

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::str::FromStr;

use anyhow::{Context, Result, bail};
use serde_json::Value;

pub use self::progress::BuildProgress;
use crate::command;
use crate::workspace::{CargoWorkspace, HOST_PACKAGE, WorkspacePackage};

/// The compilation target of plugins.
pub const WASM_TARGET: &str = "wasm32-wasip2";

/// The profile of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BuildProfile {
    /// The profile of the tests.
    Dev,
    /// The release profile.
    Release,
}

impl FromStr for BuildProfile {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "dev" => Ok(Self::Dev),
            "release" => Ok(Self::Release),
            _ => Err("expected dev or release".to_owned()),
        }
    }
}

impl fmt::Display for BuildProfile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Dev => "dev",
            Self::Release => "release",
        })
    }
}

/// The paths of what a build produced.
#[derive(Clone, Debug)]
pub struct BuildOutput {
    /// The server's executable.
    pub server: PathBuf,
    /// The folder with the sample plugins.
    pub plugins: PathBuf,
    /// The folder with the plugins that tests use.
    pub guests: PathBuf,
}

/// A builder that runs cargo.
pub struct WorkspaceBuilder<'a> {
    workspace: &'a CargoWorkspace,
    /// The callback for cargo's progress. Without one, cargo shows its progress itself.
    on_progress: Option<&'a mut dyn FnMut(BuildProgress)>,
    quiet: bool,
}

impl<'a> WorkspaceBuilder<'a> {
    /// Creates a builder that leaves the display of progress to cargo.
    pub fn new(workspace: &'a CargoWorkspace) -> Self {
        Self {
            workspace,
            on_progress: None,
            quiet: false,
        }
    }

    /// Creates a builder that reports progress to `watch` whenever it changes.
    pub fn with_progress(
        workspace: &'a CargoWorkspace,
        watch: &'a mut dyn FnMut(BuildProgress),
    ) -> Self {
        Self {
            workspace,
            on_progress: Some(watch),
            quiet: false,
        }
    }

    /// Suppresses everything except warnings and errors.
    #[must_use]
    pub fn quiet(self) -> Self {
        Self {
            quiet: true,
            ..self
        }
    }

    /// Builds the server, every sample plugin and every guest.
    pub fn build_all(&mut self, profile: BuildProfile) -> Result<BuildOutput> {
        // The samples and the guests are separate builds. Otherwise, features that the guests
        // enable in shared dependencies would change the samples' bytes.
        Ok(BuildOutput {
            server: self.build_server(profile)?,
            plugins: self.build_samples()?,
            guests: self.build_guests()?,
        })
    }

    /// Like [`build_all`](Self::build_all), but uses `build_server` instead of building one if it
    /// is given.
    pub fn build_all_with_server(
        &mut self,
        server: Option<&Path>,
        profile: BuildProfile,
    ) -> Result<BuildOutput> {
        match server {
            Some(server) => {
                let server = fs::canonicalize(server)
                    .with_context(|| format!("no server {}", server.display()))?;
                Ok(BuildOutput {
                    server,
                    plugins: self.build_samples()?,
                    guests: self.build_guests()?,
                })
            }
            None => self.build_all(profile),
        }
    }

    /// Builds the server.
    pub fn build_server(&mut self, profile: BuildProfile) -> Result<PathBuf> {
        let mut cargo = command::cargo(&self.workspace.root);
        cargo.args(["build", "--package", HOST_PACKAGE, "--bin", HOST_PACKAGE]);
        if profile == BuildProfile::Release {
            cargo.arg("--release");
        }
        let artifacts = self.build_artifacts(&mut cargo)?;
        let mut executables = artifacts
            .iter()
            .filter_map(|artifact| artifact.get("executable")?.as_str());
        executables
            .next_back()
            .map(PathBuf::from)
            .context("cargo built no server")
    }

    /// Builds the sample plugins into `build_plugins` in the target folder.
    pub fn build_samples(&mut self) -> Result<PathBuf> {
        let workspace = self.workspace;
        self.build_plugins(&workspace.plugins().collect::<Vec<_>>(), "plugins")
    }

    /// Builds the examples in Rust into `build_examples` in the target folder.
    pub fn build_examples(&mut self) -> Result<PathBuf> {
        let workspace = self.workspace;
        self.build_plugins(&workspace.examples().collect::<Vec<_>>(), "examples")
    }

    /// Builds the guests into `build_guests` in the target folder.
    pub fn build_guests(&mut self) -> Result<PathBuf> {
        let workspace = self.workspace;
        self.build_plugins(&workspace.guests().collect::<Vec<_>>(), "guests")
    }

    /// Builds one guest into `build_guests` in the target folder.
    pub fn build_guest(&mut self, id: &str) -> Result<PathBuf> {
        let workspace = self.workspace;
        let guest = workspace
            .guests()
            .find(|guest| guest.plugin_id() == id)
            .with_context(|| format!("no guest {id}"))?;
        self.build_plugins(&[guest], "guests")
    }

    /// Builds crates in one run of cargo and copies each to `<target>/<folder>/<id>.wasm`.
    fn build_plugins(&mut self, packages: &[&WorkspacePackage], folder: &str) -> Result<PathBuf> {
        let to = self.workspace.target.join(folder);
        fs::create_dir_all(&to).with_context(|| format!("failed to create {}", to.display()))?;
        if packages.is_empty() {
            return Ok(to);
        }
        let mut cargo = command::cargo(&self.workspace.root);
        cargo.args(["build", "--profile", "plugin", "--target", WASM_TARGET]);
        cargo
            .arg("--config")
            .arg(remap_path_config(&self.workspace.root)?);
        for package in packages {
            cargo.args(["--package", &package.name]);
        }
        let mut files = wasm_artifacts(&self.build_artifacts(&mut cargo)?);
        for package in packages {
            let manifest = self.workspace.root.join(&package.folder).join("Cargo.toml");
            let Some(from) = files.remove(&manifest) else {
                bail!(
                    "{} gave no .wasm file; its [lib] needs crate-type = [\"cdylib\"]",
                    package.name
                );
            };
            copy_if_changed(&from, &to.join(package.plugin_id()).with_extension("wasm"))?;
        }
        Ok(to)
    }

    /// Runs cargo and returns the artifacts that it reports.
    fn build_artifacts(&mut self, cargo: &mut Command) -> Result<Vec<Value>> {
        let mut artifacts = Vec::new();
        let mut read = |line: &str| {
            let message = serde_json::from_str::<Value>(line).unwrap_or_default();
            if message
                .get("reason")
                .is_some_and(|reason| reason == "compiler-artifact")
            {
                artifacts.push(message);
            }
        };
        cargo.arg("--message-format=json-render-diagnostics");
        if self.quiet {
            cargo.arg("--quiet");
        }
        let done = match &mut self.on_progress {
            Some(watch) => progress::run_with_progress(cargo, *watch, read)?,
            None => command::stream(cargo, &mut read)?,
        };
        if done {
            Ok(artifacts)
        } else {
            bail!("the build failed: see above")
        }
    }
}

/// Returns the cargo configuration that makes a plugin's source paths relative to the workspace or
/// to cargo's home (`rustc --remap-path-prefix`). The plugin then contains no paths of the build
/// machine.
fn remap_path_config(root: &Path) -> Result<String> {
    let home = match std::env::var_os("CARGO_HOME") {
        Some(home) => PathBuf::from(home),
        None => std::env::home_dir()
            .context("this machine tells no home folder; set CARGO_HOME")?
            .join(".cargo"),
    };
    let root =
        fs::canonicalize(root).with_context(|| format!("failed to find {}", root.display()))?;
    let flags = [(root, ""), (home, "cargo")]
        .map(|(from, to)| format!("--remap-path-prefix={}={to}", from.display()));
    // JSON and TOML have the same syntax for a list of strings.
    Ok(format!(
        "target.{WASM_TARGET}.rustflags = {}",
        Value::from(flags.to_vec())
    ))
}

/// Formats a size in KiB, rounded up.
pub fn format_kib(bytes: u64) -> String {
    format!("{} KiB", bytes.div_ceil(1024))
}

/// Returns the .wasm files in a folder, sorted by name.
pub fn wasm_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries =
        fs::read_dir(folder).with_context(|| format!("failed to read {}", folder.display()))?;
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    files.retain(|file| is_wasm(file));
    files.sort();
    Ok(files)
}

/// Returns the .wasm files among the artifacts, by the manifest of their crate.
fn wasm_artifacts(artifacts: &[Value]) -> BTreeMap<PathBuf, PathBuf> {
    let mut files = BTreeMap::new();
    for artifact in artifacts {
        let manifest = artifact.get("manifest_path").and_then(Value::as_str);
        let names = artifact
            .get("filenames")
            .and_then(Value::as_array)
            .into_iter()
            .flatten();
        let wasm = names
            .filter_map(Value::as_str)
            .map(PathBuf::from)
            .find(|file| is_wasm(file));
        if let (Some(manifest), Some(wasm)) = (manifest, wasm) {
            files.insert(PathBuf::from(manifest), wasm);
        }
    }
    files
}

/// Copies a file if the content differs. Replaces `to` atomically, because a server may watch it.
fn copy_if_changed(from: &Path, to: &Path) -> Result<()> {
    let replace = || -> io::Result<()> {
        let bytes = fs::read(from)?;
        if fs::read(to).is_ok_and(|old| old == bytes) {
            return Ok(());
        }
        let part = to.with_extension("part");
        fs::write(&part, bytes)?;
        fs::rename(part, to)
    };
    replace().with_context(|| format!("failed to copy {} to {}", from.display(), to.display()))
}

fn is_wasm(file: &Path) -> bool {
    file.extension()
        .is_some_and(|extension| extension == "wasm")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_of_a_plugin_is_found_among_artifacts() {
        let artifacts = [
            serde_json::json!({"manifest_path": "/r/serde/Cargo.toml", "filenames": ["/t/libserde.rlib"]}),
            serde_json::json!({"manifest_path": "/w/plugins/a-b/Cargo.toml", "filenames": ["/t/a_b.wasm", "/t/x.rlib"]}),
        ];
        let files = wasm_artifacts(&artifacts);
        assert_eq!(files.len(), 1);
        assert_eq!(
            files[Path::new("/w/plugins/a-b/Cargo.toml")],
            Path::new("/t/a_b.wasm")
        );
    }

    #[test]
    fn an_unchanged_file_is_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let from = folder.path().join("from");
        let to = folder.path().join("to.wasm");
        let inode = |path: &Path| std::os::unix::fs::MetadataExt::ino(&fs::metadata(path).unwrap());
        fs::write(&from, "one").unwrap();
        copy_if_changed(&from, &to).unwrap();
        let first = inode(&to);
        copy_if_changed(&from, &to).unwrap();
        assert_eq!(inode(&to), first);
        fs::write(&from, "two").unwrap();
        copy_if_changed(&from, &to).unwrap();
        assert_eq!(fs::read_to_string(&to).unwrap(), "two");
        assert_eq!(wasm_files(folder.path()).unwrap(), [to]);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }
}
