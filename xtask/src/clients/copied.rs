//! Copies scripts next to the packages that they import.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// The module that counts the checks of a script, relative to the folder of the tests.
pub(crate) const CHECKS_SCRIPT: &str = "clients/checks.mjs";

/// Copies files into a folder. Node resolves packages relative to the script.
pub(crate) fn copy_into(files: impl IntoIterator<Item = PathBuf>, folder: &Path) -> Result<()> {
    for file in files {
        let name = file.file_name().unwrap_or_default();
        fs::copy(&file, folder.join(name))
            .with_context(|| format!("failed to copy {}", file.display()))?;
    }
    Ok(())
}
