//! Prometheus and promtool: those of the system, or the package of Debian and Ubuntu, unpacked into `target/prometheus`.

use std::path::PathBuf;

use anyhow::{Context, Result};
use toolbay_testkit::workspace::Workspace;

use crate::debian::Package;

/// What the tests use of it.
const PROMETHEUS: Package =
    Package { name: "prometheus", programs: &["prometheus", "promtool"], folder: "usr/bin", with_libraries: false };

/// The folder with both programs.
///
/// # Errors
///
/// The system has neither Prometheus nor the means to get the package.
pub(crate) fn install(workspace: &Workspace) -> Result<PathBuf> {
    let installed = workspace.target.join("prometheus");
    let programs = PROMETHEUS
        .install(&installed)
        .context("install Prometheus so that `prometheus` and `promtool` are in a folder of PATH")?;
    Ok(programs.folder)
}
