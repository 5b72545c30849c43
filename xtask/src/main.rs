//! The project's own commands: `cargo xtask build`, `test`, `demo`, `fuzz`.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "these commands talk to the person who runs them")]

mod build;
mod client;
mod clients;
mod command;
mod demo;
mod fuzz;
mod tally;
mod terminal;
mod test;
mod toolchain;
mod workspace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::workspace::Workspace;

/// Builds, tests and shows Toolbay. Every command sets up what it needs by itself.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Build the server, the sample plugins into target/plugins and the test plugins into target/guests
    Build,
    /// Build and run every test and check, the official MCP clients included
    Test(test::Options),
    /// Watch the real server do what it promises, with measured times
    Demo,
    /// Feed the host what strangers might send, under a sanitizer (see fuzz/README.md)
    Fuzz(fuzz::Options),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let result = Workspace::load().and_then(|workspace| match cli.command {
        Command::Build => build::run(&workspace).map(|()| ExitCode::SUCCESS),
        Command::Test(options) => test::run(&workspace, &options),
        Command::Demo => demo::run(&workspace).map(|()| ExitCode::SUCCESS),
        Command::Fuzz(options) => fuzz::run(&workspace, &options).map(|()| ExitCode::SUCCESS),
    });
    result.unwrap_or_else(|error| {
        eprintln!("{} {error:#}", terminal::stderr().red("error:"));
        ExitCode::FAILURE
    })
}
