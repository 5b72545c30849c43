//! The reference of every crate is made, and rustdoc has nothing to say about it.

use anyhow::Result;

use crate::command;
use crate::workspace::{HOST, Workspace};

/// Makes the reference of the workspace's native libraries into `target/doc`, as those who use them read it.
pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    let document = |packages: &[&str]| {
        let mut cargo = command::cargo(&workspace.root);
        // `--examples` (there are none) has cargo choose the features of dependencies as it does for the tests: what
        // clippy checked is used again.
        cargo.args(["doc", "--no-deps", "--lib", "--examples"]).args(packages);
        command::run(cargo.env("RUSTDOCFLAGS", "-D warnings"))
    };
    let host = document(&["--package", HOST]);
    let companions: Vec<&str> =
        workspace.companions().flat_map(|package| ["--package", package.name.as_str()]).collect();
    host.and(document(&companions))
}
