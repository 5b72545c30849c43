//! Builds the server and the plugins, and puts the plugins where a server can serve them.

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

pub use self::progress::Progress;
use crate::command;
use crate::workspace::{HOST, Package, Workspace};

/// What plugins are compiled for.
pub const WASM: &str = "wasm32-wasip2";

/// How the server is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// As the tests use it.
    Dev,
    /// As it is meant to be used.
    Release,
}

impl FromStr for Profile {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "dev" => Ok(Self::Dev),
            "release" => Ok(Self::Release),
            _ => Err("expected dev or release".to_owned()),
        }
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Dev => "dev",
            Self::Release => "release",
        })
    }
}

/// What a build gives.
#[derive(Clone, Debug)]
pub struct Built {
    /// The server.
    pub server: PathBuf,
    /// The folder with the sample plugins.
    pub plugins: PathBuf,
    /// The folder with the plugins that tests use.
    pub guests: PathBuf,
}

/// Whoever builds.
pub struct Builder<'a> {
    workspace: &'a Workspace,
    /// Who hears how far cargo is; without anybody, cargo shows that itself.
    watch: Option<&'a mut dyn FnMut(Progress)>,
    quiet: bool,
}

impl<'a> Builder<'a> {
    /// One who leaves it to cargo to show how far it is.
    pub fn new(workspace: &'a Workspace) -> Self {
        Self { workspace, watch: None, quiet: false }
    }

    /// One who tells `watch` how far cargo is, whenever that changes.
    pub fn watched(workspace: &'a Workspace, watch: &'a mut dyn FnMut(Progress)) -> Self {
        Self { workspace, watch: Some(watch), quiet: false }
    }

    /// Says nothing but warnings and errors.
    #[must_use]
    pub fn quiet(self) -> Self {
        Self { quiet: true, ..self }
    }

    /// Builds the server, every sample plugin and every guest.
    pub fn everything(&mut self, profile: Profile) -> Result<Built> {
        // Two calls: what the guests want of shared dependencies must not change the samples' bytes.
        Ok(Built { server: self.server(profile)?, plugins: self.samples()?, guests: self.guests()? })
    }

    /// The same, with this server if there is one already.
    pub fn with_server(&mut self, server: Option<&Path>, profile: Profile) -> Result<Built> {
        match server {
            Some(server) => {
                let server = fs::canonicalize(server).with_context(|| format!("no server {}", server.display()))?;
                Ok(Built { server, plugins: self.samples()?, guests: self.guests()? })
            }
            None => self.everything(profile),
        }
    }

    /// Builds the server.
    pub fn server(&mut self, profile: Profile) -> Result<PathBuf> {
        let mut cargo = command::cargo(&self.workspace.root);
        cargo.args(["build", "--package", HOST, "--bin", HOST]);
        if profile == Profile::Release {
            cargo.arg("--release");
        }
        let artifacts = self.artifacts(&mut cargo)?;
        let mut executables = artifacts.iter().filter_map(|artifact| artifact.get("executable")?.as_str());
        executables.next_back().map(PathBuf::from).context("cargo built no server")
    }

    /// Builds the sample plugins into `plugins` in the target folder.
    pub fn samples(&mut self) -> Result<PathBuf> {
        let workspace = self.workspace;
        self.plugins(&workspace.plugins().collect::<Vec<_>>(), "plugins")
    }

    /// Builds the guests into `guests` in the target folder.
    pub fn guests(&mut self) -> Result<PathBuf> {
        let workspace = self.workspace;
        self.plugins(&workspace.guests().collect::<Vec<_>>(), "guests")
    }

    /// Builds one guest into `guests` in the target folder.
    pub fn guest(&mut self, id: &str) -> Result<PathBuf> {
        let workspace = self.workspace;
        let guest = workspace.guests().find(|guest| guest.id() == id).with_context(|| format!("no guest {id}"))?;
        self.plugins(&[guest], "guests")
    }

    /// Builds crates in one call and copies each to `<target>/<folder>/<id>.wasm`.
    fn plugins(&mut self, packages: &[&Package], folder: &str) -> Result<PathBuf> {
        let to = self.workspace.target.join(folder);
        fs::create_dir_all(&to).with_context(|| format!("failed to create {}", to.display()))?;
        if packages.is_empty() {
            return Ok(to);
        }
        let mut cargo = command::cargo(&self.workspace.root);
        cargo.args(["build", "--profile", "plugin", "--target", WASM]);
        cargo.arg("--config").arg(without_machine_paths(&self.workspace.root)?);
        for package in packages {
            cargo.args(["--package", &package.name]);
        }
        let mut files = wasm_artifacts(&self.artifacts(&mut cargo)?);
        for package in packages {
            let manifest = self.workspace.root.join(&package.folder).join("Cargo.toml");
            let Some(from) = files.remove(&manifest) else {
                bail!("{} gave no .wasm file; its [lib] needs crate-type = [\"cdylib\"]", package.name);
            };
            copy_if_changed(&from, &to.join(package.id()).with_extension("wasm"))?;
        }
        Ok(to)
    }

    /// Runs cargo and returns what it says that it made.
    fn artifacts(&mut self, cargo: &mut Command) -> Result<Vec<Value>> {
        let mut artifacts = Vec::new();
        let mut read = |line: &str| {
            let message = serde_json::from_str::<Value>(line).unwrap_or_default();
            if message.get("reason").is_some_and(|reason| reason == "compiler-artifact") {
                artifacts.push(message);
            }
        };
        cargo.arg("--message-format=json-render-diagnostics");
        if self.quiet {
            cargo.arg("--quiet");
        }
        let done = match &mut self.watch {
            Some(watch) => progress::watch(cargo, *watch, read)?,
            None => command::stream(cargo, &mut read)?,
        };
        if done { Ok(artifacts) } else { bail!("the build failed: see above") }
    }
}

/// The configuration of cargo by which a plugin names its sources relative to the workspace or to cargo's home, not by
/// the folders of the machine that built it (`rustc --remap-path-prefix`).
fn without_machine_paths(root: &Path) -> Result<String> {
    let home = match std::env::var_os("CARGO_HOME") {
        Some(home) => PathBuf::from(home),
        None => std::env::home_dir().context("this machine tells no home folder; set CARGO_HOME")?.join(".cargo"),
    };
    let root = fs::canonicalize(root).with_context(|| format!("failed to find {}", root.display()))?;
    let flags = [(root, ""), (home, "cargo")].map(|(from, to)| format!("--remap-path-prefix={}={to}", from.display()));
    // A list of strings is written the same way in JSON and in TOML.
    Ok(format!("target.{WASM}.rustflags = {}", Value::from(flags.to_vec())))
}

/// A size for people.
pub fn kib(bytes: u64) -> String {
    format!("{} KiB", bytes.div_ceil(1024))
}

/// The .wasm files in a folder, by name.
pub fn wasm_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| format!("failed to read {}", folder.display()))?;
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    files.retain(|file| is_wasm(file));
    files.sort();
    Ok(files)
}

/// The .wasm files among artifacts, by the manifest of the crate that they are of.
fn wasm_artifacts(artifacts: &[Value]) -> BTreeMap<PathBuf, PathBuf> {
    let mut files = BTreeMap::new();
    for artifact in artifacts {
        let manifest = artifact.get("manifest_path").and_then(Value::as_str);
        let names = artifact.get("filenames").and_then(Value::as_array).into_iter().flatten();
        let wasm = names.filter_map(Value::as_str).map(PathBuf::from).find(|file| is_wasm(file));
        if let (Some(manifest), Some(wasm)) = (manifest, wasm) {
            files.insert(PathBuf::from(manifest), wasm);
        }
    }
    files
}

/// A server may be watching `to`: it is replaced at once, and only by something else.
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
    file.extension().is_some_and(|extension| extension == "wasm")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plugin_is_found_among_artifacts() {
        let artifacts = [
            serde_json::json!({"manifest_path": "/r/serde/Cargo.toml", "filenames": ["/t/libserde.rlib"]}),
            serde_json::json!({"manifest_path": "/w/plugins/a-b/Cargo.toml", "filenames": ["/t/a_b.wasm", "/t/x.rlib"]}),
        ];
        let files = wasm_artifacts(&artifacts);
        assert_eq!(files.len(), 1);
        assert_eq!(files[Path::new("/w/plugins/a-b/Cargo.toml")], Path::new("/t/a_b.wasm"));
    }

    #[test]
    fn an_unchanged_file_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("from"), folder.path().join("to.wasm"));
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
