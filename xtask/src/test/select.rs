//! Selects crates, in arguments of cargo.

use toolbay_testkit::workspace::{Package, Workspace};

/// Selects every crate that is built for this machine. One selection for all of cargo's commands: with another one,
/// cargo would give shared dependencies other features, and compile Wasmtime once more for that.
pub(super) fn natives(workspace: &Workspace) -> Vec<&str> {
    let guests = workspace.guests().flat_map(|guest| ["--exclude", guest.name.as_str()]);
    std::iter::once("--workspace").chain(guests).collect()
}

/// Selects these crates.
pub(super) fn packages<'a>(packages: impl Iterator<Item = &'a Package>) -> Vec<&'a str> {
    packages.flat_map(|package| ["--package", package.name.as_str()]).collect()
}
