//! `cargo xtask miri`: runs the tests of the host's unsafe code under Miri, with WebAssembly code
//! that is compiled beforehand.

use std::fs;
use std::process::Command;

use anstream::println;
use anyhow::{Context, Result};
use toolbay_testkit::command;
use toolbay_testkit::terminal;
use toolbay_testkit::workspace::{CargoWorkspace, HOST_PACKAGE};

/// The crate with the unsafe code.
const UNSAFE_CRATE: &str = "toolbay-sandbox";

/// The path prefix of the tests of the unsafe code.
const UNSAFE_TESTS: &str = "cache::code::tests::";

/// The test that writes the compiled code for Miri into the folder in the variable
/// [`CODE_FOLDER_VARIABLE`].
const WRITER_TEST: &str = "code_for_miri_is_written";

/// The environment variable with the folder of the compiled code.
const CODE_FOLDER_VARIABLE: &str = "TOOLBAY_MIRI";

/// Additional permissions for Miri: reading the compiled code, and the pointers that Wasmtime's
/// interpreter converts from integers.
const MIRI_FLAGS: &str = "-Zmiri-disable-isolation -Zmiri-permissive-provenance";

/// Runs `cargo xtask miri`.
pub(crate) fn run(workspace: &CargoWorkspace) -> Result<()> {
    ensure_miri()?;
    let folder = workspace.target.join("miri-code");
    drop(fs::remove_dir_all(&folder));
    fs::create_dir_all(&folder)
        .with_context(|| format!("failed to create {}", folder.display()))?;

    println!("{}", terminal::bold("\n==> code for Miri"));
    let mut cargo = command::cargo(&workspace.root);
    // The server's crate is selected too, so that dependencies have the same features as in its
    // build and are not compiled again.
    cargo.args([
        "test",
        "--package",
        HOST_PACKAGE,
        "--package",
        UNSAFE_CRATE,
        "--lib",
        "--",
        "--ignored",
        "--exact",
    ]);
    command::run(
        cargo
            .arg(format!("{UNSAFE_TESTS}{WRITER_TEST}"))
            .env(CODE_FOLDER_VARIABLE, &folder),
    )?;

    println!("{}", terminal::bold("\n==> Miri"));
    // The cargo that runs this belongs to another toolchain.
    let mut cargo = Command::new("cargo");
    cargo.args([
        "+nightly",
        "miri",
        "test",
        "--package",
        UNSAFE_CRATE,
        "--lib",
        "--",
        UNSAFE_TESTS,
    ]);
    cargo
        .env("MIRIFLAGS", MIRI_FLAGS)
        .env(CODE_FOLDER_VARIABLE, &folder);
    // These variables of cargo and rustup would select this toolchain again.
    cargo
        .env_remove("RUSTUP_TOOLCHAIN")
        .env_remove("CARGO")
        .current_dir(&workspace.root);
    command::run(&mut cargo)
}

fn ensure_miri() -> Result<()> {
    let mut cargo = Command::new("cargo");
    command::output(cargo.args(["+nightly", "miri", "--version"]).env_remove("RUSTUP_TOOLCHAIN"))
        .context("Miri is missing: rustup toolchain install nightly --profile minimal --component miri,rust-src")?;
    Ok(())
}
