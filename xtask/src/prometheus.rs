//! Provides Prometheus and promtool: those of the system, or those of the Debian and Ubuntu
//! package, unpacked into `target/prometheus`.

use std::path::PathBuf;

use anyhow::{Context, Result};
use toolbay_testkit::workspace::CargoWorkspace;

use crate::debian::DebianPackage;

/// The package and the programs that the tests use.
const PROMETHEUS_PACKAGE: DebianPackage = DebianPackage {
    name: "prometheus",
    programs: &["prometheus", "promtool"],
    folder: "usr/bin",
    with_libraries: false,
};

/// Returns the folder that contains both programs.
///
/// # Errors
///
/// Fails if the system neither has Prometheus nor can download the package.
pub(crate) fn install(workspace: &CargoWorkspace) -> Result<PathBuf> {
    let installed = workspace.target.join("prometheus");
    let programs = PROMETHEUS_PACKAGE.install(&installed).context(
        "install Prometheus so that `prometheus` and `promtool` are in a folder of PATH",
    )?;
    Ok(programs.folder)
}
