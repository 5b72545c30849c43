//! The project's own commands: `cargo xtask build`, `test`, `languages`, `conformance`, `demo`, `soak`, `bench`, `fuzz`.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "these commands talk to the person who runs them")]

mod bench;
mod build;
mod client;
mod clients;
mod command;
mod conformance;
mod connection;
mod demo;
mod fuzz;
mod languages;
mod latency;
mod process;
mod server;
mod serving;
mod signal;
mod soak;
mod steps;
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
    /// Build the plugins of each language from its template, and call every tool through an official client
    Languages(languages::Options),
    /// Run the official conformance suite against the real server
    Conformance,
    /// Watch the real server do what it promises, with measured times
    Demo,
    /// Call without end while plugins misbehave and their files change, and see that nothing is lost and nothing grows
    Soak(soak::Options),
    /// Measure the real server from outside
    #[command(subcommand)]
    Bench(bench::Bench),
    /// Feed the host what strangers might send, under a sanitizer (see fuzz/README.md)
    Fuzz(fuzz::Options),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let result = Workspace::load().and_then(|workspace| match cli.command {
        Command::Build => build::run(&workspace).map(|()| ExitCode::SUCCESS),
        Command::Test(options) => test::run(&workspace, &options),
        Command::Languages(options) => languages::run(&workspace, &options),
        Command::Conformance => conformance::run(&workspace),
        Command::Demo => demo::run(&workspace).map(|()| ExitCode::SUCCESS),
        Command::Bench(bench) => bench::run(&workspace, &bench).map(|()| ExitCode::SUCCESS),
        Command::Soak(options) => soak::run(&workspace, &options),
        Command::Fuzz(options) => fuzz::run(&workspace, &options).map(|()| ExitCode::SUCCESS),
    });
    result.unwrap_or_else(|error| {
        eprintln!("{} {error:#}", terminal::stderr().red("error:"));
        ExitCode::FAILURE
    })
}
