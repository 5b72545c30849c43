//! Builds the cargo arguments that select crates.

use toolbay_testkit::workspace::{CargoWorkspace, WorkspacePackage};

/// Selects every crate that is compiled for this machine. All cargo commands use the same
/// selection. With a different selection, cargo would enable different features of shared
/// dependencies and compile Wasmtime again.
pub(super) fn select_native(workspace: &CargoWorkspace) -> Vec<&str> {
    let guests = workspace
        .guests()
        .flat_map(|guest| ["--exclude", guest.name.as_str()]);
    std::iter::once("--workspace").chain(guests).collect()
}

/// Selects these crates.
pub(super) fn select_packages<'a>(
    packages: impl Iterator<Item = &'a WorkspacePackage>,
) -> Vec<&'a str> {
    packages
        .flat_map(|package| ["--package", package.name.as_str()])
        .collect()
}
