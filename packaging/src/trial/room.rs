//! A place without anything of ours: an empty home, and a `PATH` without Rust.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use tempfile::TempDir;
use toolbay_testkit::command;

/// What a `PATH` must not lead to.
const RUST: [&str; 3] = ["cargo", "rustc", "rustup"];

/// An empty folder with an empty home in it, and the programs that every machine has. Dropping it deletes it.
#[derive(Debug)]
pub(crate) struct Room {
    folder: TempDir,
    path: OsString,
}

impl Room {
    /// An empty room.
    pub(crate) fn new() -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("toolbay-dist-").tempdir().context("failed to make a folder")?;
        for name in ["home", "work", "installed"] {
            fs::create_dir(folder.path().join(name))?;
        }
        // A version manager chooses a Python by the home, which is empty here; so the one that it chooses comes first.
        let python = command::output(Command::new("python3").args(["-c", "import sys; print(sys.executable)"]))?;
        let python = Path::new(python.trim()).parent().map(Path::to_owned);
        let path = std::env::var_os("PATH").unwrap_or_default();
        // dpkg wants programs of the administrator, also where the user's PATH does not lead to them.
        let administrator = ["/usr/sbin", "/sbin"].map(PathBuf::from);
        let folders = python.into_iter().chain(std::env::split_paths(&path)).chain(administrator);
        let clean = folders.filter(|folder| !RUST.iter().any(|name| folder.join(name).exists()));
        let path = std::env::join_paths(clean)?;
        ensure!(!path.is_empty(), "every folder of PATH has Rust in it");
        Ok(Self { folder, path })
    }

    /// A command in the folder that its user works in.
    pub(crate) fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command.env_clear().env("PATH", &self.path).env("HOME", self.home()).env("LANG", "C.UTF-8");
        command.current_dir(self.work());
        command
    }

    /// The user's home.
    pub(crate) fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    /// Where its user works.
    pub(crate) fn work(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    /// Where things are installed.
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
        let seen =
            command::output(room.command("sh").args(["-c", "echo ~; pwd; command -v cargo || echo no cargo; env"]));
        let seen = seen.unwrap();
        let (home, work) = (room.home(), room.work());
        assert!(seen.starts_with(&format!("{}\n{}\nno cargo\n", home.display(), work.display())), "{seen}");
        assert!(!seen.contains("CARGO") && !seen.contains("RUST"), "{seen}");
    }
}
