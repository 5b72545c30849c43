//! Selects crates, in arguments of cargo.

use toolbay_testkit::workspace::{Package, Workspace};

/// Selects every crate that is compiled for this machine. All of cargo's commands use the same selection: with another
/// one, cargo would enable other features of shared dependencies, and compile Wasmtime again for that.
pub(super) fn natives(workspace: &Workspace) -> Vec<&str> {
    let guests = workspace.guests().flat_map(|guest| ["--exclude", guest.name.as_str()]);
    std::iter::once("--workspace").chain(guests).collect()
}

/// Selects these crates.
pub(super) fn packages<'a>(packages: impl Iterator<Item = &'a Package>) -> Vec<&'a str> {
    packages.flat_map(|package| ["--package", package.name.as_str()]).collect()
}
