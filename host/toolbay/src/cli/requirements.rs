//! Checks that the programs that build a plugin are installed.

use anyhow::bail;
use toolbay_settings::project::ProjectFile;

/// Checks that all build requirements are installed.
///
/// # Errors
///
/// Requirements are missing. The message lists them.
pub(super) fn check_installed(project: &ProjectFile) -> anyhow::Result<()> {
    let missing = project.missing_requirements();
    if missing.is_empty() {
        return Ok(());
    }
    bail!(
        "missing build requirements:\n    {}",
        missing.join("\n    ")
    )
}
