//! Builds the server and the plugins, and puts the plugins where a server can serve them.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use serde_json::Value;

use crate::command;
use crate::terminal;
use crate::toolchain::{self, WASM};
use crate::workspace::{HOST, Package, Workspace};

/// How the server is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Profile {
    /// As the tests use it
    Dev,
    /// As it is meant to be used
    Release,
}

/// What a build gives.
pub(crate) struct Built {
    /// The server.
    pub(crate) server: PathBuf,
    /// The folder with the sample plugins.
    pub(crate) plugins: PathBuf,
    /// The folder with the plugins that tests use.
    pub(crate) guests: PathBuf,
}

/// `cargo xtask build`.
pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    let built = build(workspace)?;
    println!("{}", terminal::stdout().bold("Built:"));
    println!("  {}", built.server.display());
    for folder in [&built.plugins, &built.guests] {
        for file in wasm_files(folder)? {
            println!("  {}  {}", file.display(), terminal::stdout().dim(kib(fs::metadata(&file)?.len())));
        }
    }
    Ok(())
}

/// Sets up the toolchain and builds everything that is not a test.
pub(crate) fn build(workspace: &Workspace) -> Result<Built> {
    build_as(workspace, Profile::Dev)
}

/// The same, with the server built in another way.
pub(crate) fn build_as(workspace: &Workspace, profile: Profile) -> Result<Built> {
    toolchain::ensure_target(workspace)?;
    Ok(Built {
        server: server(workspace, profile)?,
        // Two calls: what the guests want of shared dependencies must not change the samples' bytes.
        plugins: plugins(workspace, workspace.plugins().collect(), "plugins")?,
        guests: plugins(workspace, workspace.guests().collect(), "guests")?,
    })
}

/// A size for people.
pub(crate) fn kib(bytes: u64) -> String {
    format!("{} KiB", bytes.div_ceil(1024))
}

/// Builds the server alone.
pub(crate) fn server(workspace: &Workspace, profile: Profile) -> Result<PathBuf> {
    let mut cargo = command::cargo(&workspace.root);
    // `--examples` (there are none) has cargo choose the features of
    // dependencies as it does for tests, so that nothing is compiled twice.
    cargo.args(["build", "--package", HOST, "--bins", "--examples"]);
    if profile == Profile::Release {
        cargo.arg("--release");
    }
    let mut server = None;
    for artifact in artifacts(&mut cargo)? {
        let executable = artifact.get("executable").and_then(Value::as_str).map(PathBuf::from);
        server = server.or(executable);
    }
    server.context("cargo built no server")
}

/// Builds crates in one call and copies each to `target/<folder>/<id>.wasm`.
fn plugins(workspace: &Workspace, packages: Vec<&Package>, folder: &str) -> Result<PathBuf> {
    let to = workspace.target.join(folder);
    fs::create_dir_all(&to).with_context(|| format!("failed to create {}", to.display()))?;
    if packages.is_empty() {
        return Ok(to);
    }
    let mut cargo = command::cargo(&workspace.root);
    cargo.args(["build", "--profile", "plugin", "--target", WASM]);
    for package in &packages {
        cargo.args(["--package", &package.name]);
    }
    let mut files = wasm_artifacts(&artifacts(&mut cargo)?);
    for package in packages {
        let manifest = workspace.root.join(&package.folder).join("Cargo.toml");
        let Some(from) = files.remove(&manifest) else {
            bail!("{} gave no .wasm file; its [lib] needs crate-type = [\"cdylib\"]", package.name);
        };
        copy_if_changed(&from, &to.join(package.id()).with_extension("wasm"))?;
    }
    Ok(to)
}

/// Runs cargo and returns what it says that it made.
fn artifacts(cargo: &mut Command) -> Result<Vec<Value>> {
    let mut artifacts = Vec::new();
    let done = command::stream(cargo.arg("--message-format=json-render-diagnostics"), |line| {
        let message = serde_json::from_str::<Value>(line).unwrap_or_default();
        if message.get("reason").is_some_and(|reason| reason == "compiler-artifact") {
            artifacts.push(message);
        }
    })?;
    if done { Ok(artifacts) } else { bail!("the build failed: see above") }
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

fn wasm_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| format!("failed to read {}", folder.display()))?;
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    files.retain(|file| is_wasm(file));
    files.sort();
    Ok(files)
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
