//! Builds the program for the packages. It is statically linked, so that it runs on every Linux of
//! its machine.

use std::path::PathBuf;
use std::process::Command;

use anstream::println;
use anyhow::{Context as _, Result, bail};
use clap::ValueEnum;
use toolbay_testkit::command;
use toolbay_testkit::workspace::{CargoWorkspace, HOST_PACKAGE};

use crate::tools::{Tools, has, path_with};

/// The profile of released programs, in the workspace's `Cargo.toml`.
const PROFILE: &str = "dist";

/// What to build for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Target {
    /// `x86_64-unknown-linux-musl`
    #[value(name = "x86-64")]
    X86,
    /// `aarch64-unknown-linux-musl`; its packages cannot be tested here
    #[value(name = "aarch64")]
    Arm,
}

impl Target {
    /// Returns its name in Rust.
    pub(crate) fn triple(self) -> &'static str {
        match self {
            Self::X86 => "x86_64-unknown-linux-musl",
            Self::Arm => "aarch64-unknown-linux-musl",
        }
    }

    /// Returns the possible C compilers: the one that Debian packages, and equivalents.
    fn compilers(self) -> &'static [&'static str] {
        match self {
            Self::X86 => &["x86_64-linux-musl-gcc", "musl-gcc"],
            Self::Arm => &["aarch64-linux-musl-gcc"],
        }
    }
}

/// Builds the server with `cargo auditable`, which embeds the list of its crates for scanners.
pub(crate) fn server(workspace: &CargoWorkspace, target: Target, tools: &Tools) -> Result<PathBuf> {
    let triple = target.triple();
    command::run(
        Command::new("rustup")
            .args(["target", "add", triple])
            .current_dir(&workspace.root),
    )
    .context("a static build needs the Rust target, which rustup installs")?;
    let variable = triple.replace('-', "_");
    println!("Building the server for {triple}; this takes many minutes");
    let mut cargo = command::cargo(&workspace.root);
    cargo
        .args([
            "auditable",
            "rustc",
            "--package",
            HOST_PACKAGE,
            "--bin",
            HOST_PACKAGE,
            "--profile",
            PROFILE,
            "--target",
            triple,
        ])
        .env("PATH", path_with(&tools.auditable()?)?)
        // The C compiler links musl with its own start files, and Rust links others. A program that
        // contains both crashes.
        .env(
            format!("CARGO_TARGET_{}_LINKER", variable.to_uppercase()),
            "rust-lld",
        );
    match target.compilers().iter().find(|name| has(name)) {
        Some(compiler) => {
            cargo.env(format!("CC_{variable}"), compiler);
        }
        None if target == Target::X86 => {
            bail!(
                "the parts in C need a compiler for musl: on Debian and Ubuntu, install musl-tools"
            )
        }
        None => {
            let (compiler, archiver) = tools.zig(triple)?;
            cargo
                .env(format!("CC_{variable}"), compiler)
                .env(format!("AR_{variable}"), archiver);
        }
    }
    // A static position-independent program contains a table of relocations. This form takes a few
    // KiB instead of 1.5 MB.
    command::run(cargo.args(["--", "-Clink-arg=--pack-dyn-relocs=relr"]))?;
    Ok(workspace
        .target
        .join(triple)
        .join(PROFILE)
        .join(HOST_PACKAGE))
}
