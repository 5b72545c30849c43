//! The tools that write and install packages, each in its own directory below the target directory.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anstream::println;
use anyhow::{Context as _, Result};
use toolbay_testkit::command;
use toolbay_testkit::guests::run_once;

/// Builds wheels.
const HATCHLING: &str = "hatchling==1.33.0";

/// Installs wheels, as an alternative to pip.
const UV: &str = "uv==0.13.8";

/// A C compiler for every machine.
const ZIG: &[&str] = &["ziglang==0.17.0", "cargo-zigbuild==0.24.0"];

/// Builds and checks bundles for desktop clients.
const MCPB: &str = "@anthropic-ai/mcpb@2.1.2";

/// Embeds the list of crates in the program.
const AUDITABLE: [&str; 2] = ["cargo-auditable", "0.7.7"];

/// Writes the list of crates to a file.
const CYCLONEDX: [&str; 2] = ["cargo-cyclonedx", "0.5.9"];

/// Returns `PATH` with a directory prepended.
pub(crate) fn path_with(folder: &Path) -> Result<OsString> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    Ok(std::env::join_paths(
        std::iter::once(folder.to_owned()).chain(std::env::split_paths(&path)),
    )?)
}

/// Returns whether a program is installed on this machine.
pub(crate) fn has(program: &str) -> bool {
    command::output(Command::new(program).arg("--version")).is_ok()
}

/// The directory that contains the tools.
#[derive(Clone, Debug)]
pub(crate) struct Tools {
    folder: PathBuf,
}

impl Tools {
    /// Creates the tools below the target directory.
    pub(crate) fn new(target: &Path) -> Self {
        Self {
            folder: target.join("tools"),
        }
    }

    /// Returns a Python that has hatchling.
    pub(crate) fn hatchling(&self) -> Result<PathBuf> {
        Ok(self.python("hatchling", &[HATCHLING])?.join("python"))
    }

    /// Returns the directory that contains `uv` and `uvx`.
    pub(crate) fn uv(&self) -> Result<PathBuf> {
        self.python("uv", &[UV])
    }

    /// Returns a compiler and an archiver for a target, with the command-line interface of the
    /// native ones.
    pub(crate) fn zig(&self, triple: &str) -> Result<(PathBuf, PathBuf)> {
        let bin = self.python("zig", ZIG)?;
        let zigbuild = bin.join("cargo-zigbuild");
        let wrapper = |name: &str, words: &str| -> Result<PathBuf> {
            let path = self.folder.join(format!("zig-{triple}-{name}"));
            let python = bin.join("python");
            // cargo-zigbuild removes compiler options that crates pass and Zig does not support.
            let script = format!(
                "#!/bin/sh\nCARGO_ZIGBUILD_PYTHON_PATH='{}' exec '{}' zig {words} \"$@\"\n",
                python.display(),
                zigbuild.display()
            );
            fs::write(&path, script)?;
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
            Ok(path)
        };
        let target = triple.replace("-unknown-", "-");
        Ok((
            wrapper("cc", &format!("cc -- -target {target}"))?,
            wrapper("ar", "ar --")?,
        ))
    }

    /// Returns the program that packs bundles.
    pub(crate) fn mcpb(&self) -> Result<PathBuf> {
        let folder = self.folder.join("mcpb");
        run_once(&folder.with_added_extension("installed"), MCPB, || {
            println!("Installing {MCPB}");
            fs::create_dir_all(&folder)?;
            let mut npm = Command::new("npm");
            npm.args([
                "install",
                "--silent",
                "--no-audit",
                "--no-fund",
                "--no-save",
                "--ignore-scripts",
                MCPB,
            ]);
            command::run(npm.current_dir(&folder))
                .context("the bundle needs Node.js 20 or newer, with npm")
        })?;
        Ok(folder.join("node_modules/.bin/mcpb"))
    }

    /// Returns the directory that contains `cargo auditable`.
    pub(crate) fn auditable(&self) -> Result<PathBuf> {
        self.crates(AUDITABLE)
    }

    /// Returns the directory that contains `cargo cyclonedx`.
    pub(crate) fn cyclonedx(&self) -> Result<PathBuf> {
        self.crates(CYCLONEDX)
    }

    /// Installs a program from a crate, once, and returns its directory.
    fn crates(&self, [name, version]: [&str; 2]) -> Result<PathBuf> {
        let folder = self.folder.join(name);
        run_once(&folder.with_added_extension("installed"), version, || {
            println!("Installing {name} {version}");
            let mut cargo = command::cargo(Path::new("/"));
            cargo
                .args(["install", "--locked", "--quiet", "--root"])
                .arg(&folder)
                .args(["--version", version, name]);
            command::run(&mut cargo)
        })?;
        Ok(folder.join("bin"))
    }

    /// Installs Python packages into a separate environment, once, and returns the directory of its
    /// programs.
    fn python(&self, name: &str, packages: &[&str]) -> Result<PathBuf> {
        let folder = self.folder.join(name);
        run_once(
            &folder.with_added_extension("installed"),
            &packages.join(" "),
            || {
                println!("Installing {}", packages.join(" and "));
                command::run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&folder))
                .context("it needs Python 3.10 or newer; on Debian and Ubuntu, also the package python3-venv")?;
                let mut pip = Command::new(folder.join("bin/python"));
                pip.args([
                    "-m",
                    "pip",
                    "install",
                    "--quiet",
                    "--disable-pip-version-check",
                ]);
                command::run(pip.args(packages))
            },
        )?;
        Ok(folder.join("bin"))
    }
}
