//! A temporary working folder for a server, with a plugin folder in it.

#![allow(
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    reason = "tests fail by panicking, as the type says; `make` is for everybody else"
)]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result};
use tempfile::TempDir;

use crate::ServerProgram;

/// The name of the plugin folder within a server's working folder.
const PLUGIN_FOLDER_NAME: &str = "plugins";

/// A temporary folder that contains `plugins/` and is the working folder of a program's servers.
/// Dropping the last clone deletes the folder. Every method except [`create`](Self::create) panics
/// on an error, which fails the test.
#[derive(Clone, Debug)]
pub struct TestFolder {
    root: Arc<TempDir>,
    program: ServerProgram,
    /// The transformation that is applied to each file before it is written to the plugin folder.
    rewrite: Option<fn(Vec<u8>) -> Vec<u8>>,
}

impl TestFolder {
    /// Creates a folder whose name begins with `prefix`.
    pub fn create(program: &ServerProgram, prefix: &str) -> Result<Self> {
        let root = tempfile::Builder::new()
            .prefix(prefix)
            .tempdir()
            .context("failed to make a folder")?;
        let plugins = root.path().join(PLUGIN_FOLDER_NAME);
        fs::create_dir(&plugins)
            .with_context(|| format!("failed to create {}", plugins.display()))?;
        Ok(Self {
            root: Arc::new(root),
            program: program.clone(),
            rewrite: None,
        })
    }

    /// Creates a folder for a test.
    pub fn new(program: &ServerProgram) -> Self {
        Self::create(program, "toolbay-test-").unwrap()
    }

    /// Creates a folder with one plugin.
    pub fn with_plugin(program: &ServerProgram, name: &str, component: impl AsRef<[u8]>) -> Self {
        let folder = Self::new(program);
        folder.put(name, component);
        folder
    }

    /// Applies `rewrite` to each file before it is written to the plugin folder.
    #[must_use]
    pub fn with_rewrite(self, rewrite: fn(Vec<u8>) -> Vec<u8>) -> Self {
        Self {
            rewrite: Some(rewrite),
            ..self
        }
    }

    /// Returns the program whose servers use this folder.
    pub fn program(&self) -> &ServerProgram {
        &self.program
    }

    /// Returns the working folder of the servers.
    pub fn root(&self) -> &Path {
        self.root.path()
    }

    /// Returns a path in the working folder, next to the plugin folder.
    pub fn sibling_path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// Returns the plugin folder.
    pub fn plugin_folder(&self) -> PathBuf {
        self.sibling_path(PLUGIN_FOLDER_NAME)
    }

    /// Returns the path of a file in the plugin folder.
    pub fn plugin_path(&self, name: &str) -> PathBuf {
        self.plugin_folder().join(name)
    }

    /// Writes the configuration file of the servers.
    pub fn write_config(&self, config: &str) {
        fs::write(self.sibling_path("toolbay.toml"), config).unwrap();
    }

    /// Puts a file into the plugin folder as installers do: writes it elsewhere, then renames it.
    /// Sets the modification time of a grant to an hour ago, so that the server does not wait for
    /// the end of a possible write.
    pub fn put(&self, name: &str, content: impl AsRef<[u8]>) {
        let staged = self.stage(name, content);
        fs::rename(staged, self.plugin_path(name)).unwrap();
    }

    /// Writes a file next to the plugin folder, on the same file system.
    pub fn stage(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let staged = self.sibling_path(&format!("staged-{name}"));
        match self.rewrite {
            Some(rewrite) => fs::write(&staged, rewrite(content.as_ref().to_vec())).unwrap(),
            None => fs::write(&staged, content).unwrap(),
        }
        if Path::new(name)
            .extension()
            .is_some_and(|extension| extension == "toml")
        {
            let file = fs::File::options().write(true).open(&staged).unwrap();
            file.set_modified(SystemTime::now() - Duration::from_hours(1))
                .unwrap();
        }
        staged
    }

    /// Overwrites a file in place, as `cp` does.
    pub fn overwrite(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::write(self.plugin_path(name), content).unwrap();
    }

    /// Deletes a file from the plugin folder.
    pub fn remove(&self, name: &str) {
        fs::remove_file(self.plugin_path(name)).unwrap();
    }

    /// Atomically replaces `name` in the plugin folder with a symbolic link to `target`.
    pub fn link(&self, name: &str, target: impl AsRef<Path>) {
        let staged = self.sibling_path("staged-link");
        symlink(target, &staged).unwrap();
        fs::rename(staged, self.plugin_path(name)).unwrap();
    }

    /// Creates the folder `gate/`, which the hostile guest's `wait_for_gate` watches. Returns the
    /// grant that mounts it.
    pub fn create_gate(&self) -> String {
        fs::create_dir_all(self.sibling_path("gate")).unwrap();
        "[[permissions.mounts]]\nhost = \"../gate\"\nguest = \"/gate\"\naccess = \"read\"\n"
            .to_owned()
    }

    /// Creates the file that lets every `wait_for_gate` continue.
    pub fn open_gate(&self) {
        fs::write(self.sibling_path("gate/open"), "").unwrap();
    }
}
