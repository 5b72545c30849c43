//! The source and installation folders of the clients.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use toolbay_testkit::workspace::CargoWorkspace;

/// The source and installation folders of the clients.
pub(super) struct ClientFolders {
    /// The folder of the sources, in the repository.
    pub(super) source: PathBuf,
    /// The installation folder, under `target`.
    pub(super) installed: PathBuf,
}

impl ClientFolders {
    /// Returns the folders. Creates the installation folder if it does not exist.
    pub(super) fn create(workspace: &CargoWorkspace) -> Result<Self> {
        let installed = workspace.target.join("clients");
        fs::create_dir_all(&installed)
            .with_context(|| format!("failed to create {}", installed.display()))?;
        Ok(Self {
            source: workspace.root.join("tests/clients"),
            installed,
        })
    }

    /// Reads a file in the source folder.
    pub(super) fn read(&self, name: &str) -> Result<String> {
        let file = self.source.join(name);
        fs::read_to_string(&file).with_context(|| format!("failed to read {}", file.display()))
    }
}
