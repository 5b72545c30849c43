//! The compared servers and their installation.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use toolbay_testkit::build::{BuildProfile, WorkspaceBuilder};
use toolbay_testkit::command;
use toolbay_testkit::guests::run_once;
use toolbay_testkit::workspace::CargoWorkspace;

use crate::{native, serving};
use toolbay_load::{Launch, Work};

/// Instruction for installing the other servers.
const INSTALL: &str = "`cargo xtask bench peers --install` installs it into target/peers";

/// A compared server.
pub(super) struct Peer {
    pub(super) name: &'static str,
    /// Its description, with its version.
    pub(super) about: String,
    pub(super) launch: Box<Launch<'static>>,
    /// The work that takes it about 50 ms, if known.
    pub(super) burn: Option<Work>,
}

impl Peer {
    fn new(
        name: &'static str,
        about: String,
        launch: impl Fn(Option<SocketAddr>) -> Command + 'static,
    ) -> Self {
        Self {
            name,
            about,
            launch: Box::new(launch),
            burn: None,
        }
    }
}

/// Returns Toolbay with a plain function, and with a plugin that uses the Rust SDK.
pub(super) fn toolbay(
    builder: &mut WorkspaceBuilder<'_>,
    server: Option<&Path>,
) -> Result<Vec<Peer>> {
    let built = match server {
        Some(server) => {
            fs::canonicalize(server).with_context(|| format!("no server {}", server.display()))?
        }
        None => builder.build_server(BuildProfile::Release)?,
    };
    let version = command::output(Command::new(&built).arg("--version"))?;
    let mut peers = Vec::new();
    for (name, guest, about) in [
        ("toolbay", "echo", "plain functions"),
        ("toolbay-sdk", "echo-sdk", "a plugin on the Rust SDK"),
    ] {
        let guests = builder.build_guest(guest)?;
        let folder = serving::with_plugin(&built, &guests.join(guest).with_extension("wasm"))?;
        let about = format!("{}, {about}: a fresh sandbox for each call", version.trim());
        peers.push(Peer::new(name, about, move |address| {
            serving::start(&folder, address)
        }));
    }
    Ok(peers)
}

/// Returns the servers on the official SDKs. An error explains how to install the server.
pub(super) fn others(workspace: &CargoWorkspace, install: bool) -> Vec<Result<Peer>> {
    let places = Places {
        workspace,
        source: workspace.root.join("tests/bench/peers"),
        installed: workspace.target.join("peers"),
        install,
    };
    vec![
        places
            .native()
            .context("native: the server on the official Rust SDK cannot be built"),
        places
            .node()
            .context("node: the server on the official TypeScript SDK"),
        places
            .python()
            .context("python: the server on the official Python SDK"),
    ]
}

/// The directories of the other servers.
struct Places<'workspace> {
    workspace: &'workspace CargoWorkspace,
    source: PathBuf,
    installed: PathBuf,
    install: bool,
}

impl Places<'_> {
    fn native(&self) -> Result<Peer> {
        let program = native::build(self.workspace)?.join(native::SERVER);
        let lock = fs::read_to_string(self.workspace.root.join(native::SOURCE).join("Cargo.lock"))
            .context("failed to read Cargo.lock")?;
        let version = locked(&lock, "rmcp").context("no rmcp in Cargo.lock")?;
        Ok(Peer::new(
            "native",
            format!("native tools on rmcp {version}, no sandbox"),
            move |address| {
                let mut command = Command::new(&program);
                command.args(address.map(|address| address.to_string()));
                command
            },
        ))
    }

    fn node(&self) -> Result<Peer> {
        let source = self.source.join("node");
        let installed = self.installed.join("node");
        let lock = fs::read_to_string(source.join("package-lock.json"))
            .context("failed to read package-lock.json")?;
        let stamp = installed.join("node_modules/.toolbay-stamp");
        self.installed(&stamp, &lock, || {
            fs::create_dir_all(&installed).context("failed to create a folder")?;
            for name in ["package.json", "package-lock.json"] {
                fs::copy(source.join(name), installed.join(name))
                    .with_context(|| format!("failed to copy {name}"))?;
            }
            let mut npm = Command::new("npm");
            npm.args([
                "ci",
                "--loglevel=error",
                "--no-audit",
                "--no-fund",
                "--ignore-scripts",
            ]);
            command::run(npm.current_dir(&installed))
                .context("install Node.js 20 or newer, with npm")
        })?;
        // Node resolves packages relative to the program.
        fs::copy(source.join("server.mjs"), installed.join("server.mjs"))
            .context("failed to copy the server")?;
        let node = command::output(Command::new("node").arg("--version"))?;
        let manifest = fs::read_to_string(
            installed.join("node_modules/@modelcontextprotocol/server/package.json"),
        )?;
        let manifest: serde_json::Value =
            serde_json::from_str(&manifest).context("a wrong package.json")?;
        let version = manifest
            .get("version")
            .and_then(serde_json::Value::as_str)
            .unwrap_or_default()
            .to_owned();
        let about = format!(
            "native tools on the TypeScript SDK {version}, Node {}, no sandbox",
            node.trim()
        );
        Ok(Peer::new("node", about, move |address| {
            let mut command = Command::new("node");
            command
                .arg(installed.join("server.mjs"))
                .args(address.map(|address| address.port().to_string()));
            command
        }))
    }

    fn python(&self) -> Result<Peer> {
        let source = self.source.join("python");
        let installed = self.installed.join("python");
        let wanted = fs::read_to_string(source.join("requirements.txt"))
            .context("failed to read requirements.txt")?;
        let python = installed.join("bin/python");
        self.installed(&installed.join("stamp"), &wanted, || {
            command::run(
                Command::new("python3")
                    .args(["-m", "venv", "--clear"])
                    .arg(&installed),
            )
            .context("install Python 3.10 or newer; on Debian and Ubuntu, also python3-venv")?;
            let mut pip = Command::new(&python);
            pip.args([
                "-m",
                "pip",
                "install",
                "--quiet",
                "--disable-pip-version-check",
                "--requirement",
            ]);
            command::run(pip.arg(source.join("requirements.txt")))
        })?;
        let version = command::output(Command::new(&python).arg("--version"))?;
        let about = format!(
            "native tools on the Python SDK ({}), {}, no sandbox",
            wanted.trim(),
            version.trim()
        );
        Ok(Peer::new("python", about, move |address| {
            let mut command = Command::new(&python);
            command
                .arg("-B")
                .arg(source.join("server.py"))
                .args(address.map(|address| address.port().to_string()));
            command
        }))
    }

    /// Installs a missing server if installation was requested.
    fn installed(
        &self,
        stamp: &Path,
        inputs: &str,
        install: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        if self.install {
            return run_once(stamp, inputs, install);
        }
        ensure!(
            fs::read_to_string(stamp).is_ok_and(|done| done == inputs),
            "it is not installed; {INSTALL}"
        );
        Ok(())
    }
}

/// Returns the version of a crate in a lock file.
fn locked<'a>(lock: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = lock.split_once(&format!("name = \"{name}\"\nversion = \""))?;
    rest.split('"').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_found_in_a_lock_file() {
        let lock = "[[package]]\nname = \"rmcp\"\nversion = \"3.9.0\"\n\n[[package]]\nname = \"a\"\nversion = \"1\"\n";
        assert_eq!(
            (locked(lock, "rmcp"), locked(lock, "b")),
            (Some("3.9.0"), None)
        );
    }

    #[test]
    fn what_is_not_installed_says_how_to_install_it() {
        let folder = tempfile::tempdir().unwrap();
        let workspace = CargoWorkspace::load().unwrap();
        let source = workspace.root.join("tests/bench/peers");
        let places = Places {
            workspace: &workspace,
            source,
            installed: folder.path().to_owned(),
            install: false,
        };
        for peer in [places.node(), places.python()] {
            assert!(peer.err().unwrap().to_string().contains("--install"));
        }
    }
}
