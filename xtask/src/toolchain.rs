//! Installs the parts of the Rust toolchain that the workspace needs.

use std::path::PathBuf;
use std::process::Command;

use anstream::println;
use anyhow::{Context, Result};
use toolbay_testkit::build::WASM_TARGET;
use toolbay_testkit::command;
use toolbay_testkit::workspace::CargoWorkspace;

/// Installs the target of plugins if it is missing.
pub(crate) fn ensure_target(workspace: &CargoWorkspace) -> Result<()> {
    if sysroot(workspace)?
        .join("lib/rustlib")
        .join(WASM_TARGET)
        .join("lib")
        .is_dir()
    {
        return Ok(());
    }
    println!("Installing the Rust target {WASM_TARGET}");
    run_rustup(workspace, &["target", "add", WASM_TARGET])
}

/// Installs a component of the toolchain if its program is missing.
pub(crate) fn ensure_component(
    workspace: &CargoWorkspace,
    component: &str,
    program: &str,
) -> Result<()> {
    // On some systems, the programs of a toolchain are not below the sysroot.
    if sysroot(workspace)?.join("bin").join(program).is_file() || can_run(program) {
        return Ok(());
    }
    println!("Installing {component}");
    run_rustup(workspace, &["component", "add", component])
}

fn sysroot(workspace: &CargoWorkspace) -> Result<PathBuf> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let text = command::output(
        Command::new(rustc)
            .args(["--print", "sysroot"])
            .current_dir(&workspace.root),
    )?;
    Ok(PathBuf::from(text.trim()))
}

fn can_run(program: &str) -> bool {
    command::output(Command::new(program).arg("--version")).is_ok()
}

fn run_rustup(workspace: &CargoWorkspace, args: &[&str]) -> Result<()> {
    let all = args.join(" ");
    command::run(Command::new("rustup").args(args).current_dir(&workspace.root)).with_context(|| {
        format!(
            "`rustup {all}` is needed and did not work; install rustup from https://rustup.rs, or what it would \
             install by the means of your system"
        )
    })
}
