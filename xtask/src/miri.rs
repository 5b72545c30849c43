//! `cargo xtask miri`: runs the tests of the host's unsafe code under Miri, on code that is compiled beforehand.

use std::fs;
use std::process::Command;

use anstream::println;
use anyhow::{Context, Result};
use toolbay_testkit::command;
use toolbay_testkit::terminal;
use toolbay_testkit::workspace::{HOST, Workspace};

/// The crate with the unsafe code.
const CRATE: &str = "toolbay-sandbox";

/// The tests of the unsafe code.
const TESTS: &str = "cache::code::tests::";

/// The one of them that writes what Miri opens, which the variable [`FOLDER`] tells where.
const WRITER: &str = "code_for_miri_is_written";

/// Names the folder with the compiled code.
const FOLDER: &str = "TOOLBAY_MIRI";

/// What Miri allows beyond what it does by itself: reading the compiled code, and the pointers that Wasmtime gets back
/// from integers of its interpreter.
const FLAGS: &str = "-Zmiri-disable-isolation -Zmiri-permissive-provenance";

/// `cargo xtask miri`.
pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    ensure_miri()?;
    let folder = workspace.target.join("miri-code");
    drop(fs::remove_dir_all(&folder));
    fs::create_dir_all(&folder).with_context(|| format!("failed to create {}", folder.display()))?;

    println!("{}", terminal::bold("\n==> code for Miri"));
    let mut cargo = command::cargo(&workspace.root);
    // With the server's crate, dependencies have the features that they were compiled with for it.
    cargo.args(["test", "--package", HOST, "--package", CRATE, "--lib", "--", "--ignored", "--exact"]);
    command::run(cargo.arg(format!("{TESTS}{WRITER}")).env(FOLDER, &folder))?;

    println!("{}", terminal::bold("\n==> Miri"));
    // The cargo that runs this belongs to another toolchain.
    let mut cargo = Command::new("cargo");
    cargo.args(["+nightly", "miri", "test", "--package", CRATE, "--lib", "--", TESTS]);
    cargo.env("MIRIFLAGS", FLAGS).env(FOLDER, &folder);
    // These variables of cargo and rustup would select this toolchain again.
    cargo.env_remove("RUSTUP_TOOLCHAIN").env_remove("CARGO").current_dir(&workspace.root);
    command::run(&mut cargo)
}

fn ensure_miri() -> Result<()> {
    let mut cargo = Command::new("cargo");
    command::output(cargo.args(["+nightly", "miri", "--version"]).env_remove("RUSTUP_TOOLCHAIN"))
        .context("Miri is missing: rustup toolchain install nightly --profile minimal --component miri,rust-src")?;
    Ok(())
}
