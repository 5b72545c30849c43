//! A clean environment: an empty home directory, and a `PATH` without Rust.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use tempfile::TempDir;
use toolbay_testkit::command;

/// Programs that must not be found by `PATH`.
const RUST: [&str; 3] = ["cargo", "rustc", "rustup"];

/// An empty directory that contains an empty home, and a `PATH` with only the programs of a typical
/// machine. Dropping it deletes the directory.
#[derive(Debug)]
pub(crate) struct Room {
    folder: TempDir,
    path: OsString,
}

impl Room {
    /// Creates an empty environment.
    pub(crate) fn new() -> Result<Self> {
        let folder = tempfile::Builder::new()
            .prefix("toolbay-dist-")
            .tempdir()
            .context("failed to make a folder")?;
        for name in ["home", "work", "installed"] {
            fs::create_dir(folder.path().join(name))?;
        }
        // Version managers select a Python by settings in the home directory, which is empty here.
        // Therefore, the selected Python comes first.
        let python = command::output(
            Command::new("python3").args(["-c", "import sys; print(sys.executable)"]),
        )?;
        let python = Path::new(python.trim()).parent().map(Path::to_owned);
        let path = std::env::var_os("PATH").unwrap_or_default();
        // dpkg requires programs from the administrator's directories, even if the user's `PATH`
        // does not contain them.
        let administrator = ["/usr/sbin", "/sbin"].map(PathBuf::from);
        let folders = python
            .into_iter()
            .chain(std::env::split_paths(&path))
            .chain(administrator);
        let clean = folders.filter(|folder| !RUST.iter().any(|name| folder.join(name).exists()));
        let path = std::env::join_paths(clean)?;
        ensure!(!path.is_empty(), "every folder of PATH has Rust in it");
        Ok(Self { folder, path })
    }

    /// Returns a command that runs in the working directory.
    pub(crate) fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("PATH", &self.path)
            .env("HOME", self.home())
            .env("LANG", "C.UTF-8");
        command.current_dir(self.work());
        command
    }

    /// Returns the user's home directory.
    pub(crate) fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    /// Returns the user's working directory.
    pub(crate) fn work(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    /// Returns the directory into which packages are installed.
    pub(crate) fn installed(&self) -> PathBuf {
        self.folder.path().join("installed")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_ours_is_there() {
        let room = Room::new().unwrap();
        let seen = command::output(
            room.command("sh")
                .args(["-c", "echo ~; pwd; command -v cargo || echo no cargo; env"]),
        );
        let seen = seen.unwrap();
        let home = room.home();
        let work = room.work();
        assert!(
            seen.starts_with(&format!(
                "{}\n{}\nno cargo\n",
                home.display(),
                work.display()
            )),
            "{seen}"
        );
        assert!(!seen.contains("CARGO") && !seen.contains("RUST"), "{seen}");
    }
}
