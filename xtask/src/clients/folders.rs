//! The folders of the clients: of their sources, and of what is installed.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use toolbay_testkit::workspace::Workspace;

/// Where the clients' files come from, and where they are installed to.
pub(super) struct Folders {
    /// In the repository.
    pub(super) source: PathBuf,
    /// Under `target`.
    pub(super) installed: PathBuf,
}

impl Folders {
    /// Makes what is missing under `target`.
    pub(super) fn of(workspace: &Workspace) -> Result<Self> {
        let installed = workspace.target.join("clients");
        fs::create_dir_all(&installed).with_context(|| format!("failed to create {}", installed.display()))?;
        Ok(Self { source: workspace.root.join("tests/clients"), installed })
    }

    /// The text of a file in the repository.
    pub(super) fn read(&self, name: &str) -> Result<String> {
        let file = self.source.join(name);
        fs::read_to_string(&file).with_context(|| format!("failed to read {}", file.display()))
    }
}
