//! The project's own commands: `cargo xtask build`, `test`, `clients`, `languages`, `packages`,
//! `five-tools`, `loop`, `toolchains`, `conformance`, `demo`, `soak`, `durability`, `stress`,
//! `bench`, `dist`, `fuzz`, `miri`, `measure`.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "these commands talk to the person who runs them"
)]

mod apps;
mod authors;
mod bench;
mod build;
mod clients;
mod conformance;
mod console;
mod debian;
mod demo;
mod dist;
mod fuzz;
mod languages;
mod measure;
mod miri;
mod nextest;
mod packages;
mod program;
mod progress;
mod prometheus;
mod serving;
mod stress;
mod tally;
mod test;
mod toolchain;
mod toolchains;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use toolbay_testkit::terminal;
use toolbay_testkit::workspace::CargoWorkspace;

/// Builds, tests and demonstrates Toolbay. Each command installs what it needs
#[derive(Parser)]
#[command(
    name = "cargo xtask",
    bin_name = "cargo xtask",
    arg_required_else_help = true
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Build the server, the sample plugins into target/plugins and the test plugins into
    /// target/guests
    Build,
    /// Build and run every test and check, the official MCP clients included
    Test(test::TestOptions),
    /// Run the official clients against the real server; with --all, also what agents are built
    /// with and what stands between
    Clients(clients::ClientOptions),
    /// Build the plugins of each language from its template, and call every tool through an
    /// official client
    Languages(languages::LanguageOptions),
    /// Call the same five tools of plugins in five languages and of servers on two SDKs; with
    /// --measure, also count their lines, sizes and times
    FiveTools(authors::FiveToolsOptions),
    /// Measure the time from saving a file until the tool can be called, in each language
    Loop(authors::LoopOptions),
    /// Call packages for JavaScript and Python in plugins, and write the tables of the book
    Packages(packages::PackageOptions),
    /// Build plugins with the defaults of compilers that know nothing of Toolbay, and call every
    /// tool
    Toolchains,
    /// Run the official conformance suite against the real server
    Conformance,
    /// Demonstrate the main features against the real server, with measured times
    Demo,
    /// Run a million calls while plugins misbehave and files change; check that no answer is lost
    /// and memory stays constant
    #[command(disable_help_flag = true)]
    Soak(program::ProgramArgs),
    /// Kill a process that keeps state a hundred times in a million operations; check that what it
    /// acknowledged is there
    #[command(disable_help_flag = true)]
    Durability(program::ProgramArgs),
    /// Run the black-box tests and the clients three times while four threads compute: a failure is
    /// a race
    Stress(stress::StressOptions),
    /// Measure the performance of the real server, alone and beside others (--quick: five minutes)
    #[command(disable_help_flag = true)]
    Bench(program::ProgramArgs),
    /// Make the packages that people install, from a static release build (--test: install and use
    /// each on this machine)
    #[command(disable_help_flag = true)]
    Dist(program::ProgramArgs),
    /// Fuzz the host under a sanitizer (see fuzz/README.md)
    Fuzz(fuzz::FuzzOptions),
    /// Run the host's unsafe code under Miri (see fuzz/README.md)
    Miri,
    /// Measure how the host's sources read: sizes of files, names of types, wording of comments
    Measure(measure::Options),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let result = CargoWorkspace::load().and_then(|workspace| match cli.command {
        Command::Build => build::run(&workspace).map(|()| ExitCode::SUCCESS),
        Command::Test(options) => test::run(&workspace, &options),
        Command::Clients(options) => clients::run_command(&workspace, &options),
        Command::Languages(options) => languages::run(&workspace, &options),
        Command::FiveTools(options) => authors::run_five_tools(&workspace, &options),
        Command::Loop(options) => authors::run_loop(&workspace, &options),
        Command::Packages(options) => packages::run(&workspace, &options),
        Command::Toolchains => toolchains::run(&workspace),
        Command::Conformance => conformance::run(&workspace),
        Command::Demo => demo::run(&workspace).map(|()| ExitCode::SUCCESS),
        Command::Soak(args) => program::run(&workspace, "toolbay-soak", &args),
        Command::Durability(args) => program::run(&workspace, "toolbay-durability", &args),
        Command::Stress(options) => stress::run(&workspace, &options),
        Command::Bench(args) => bench::run(&workspace, &args),
        Command::Dist(args) => dist::run(&workspace, &args),
        Command::Fuzz(options) => fuzz::run(&workspace, &options).map(|()| ExitCode::SUCCESS),
        Command::Miri => miri::run(&workspace).map(|()| ExitCode::SUCCESS),
        Command::Measure(options) => measure::run(&workspace, &options),
    });
    result.unwrap_or_else(|error| {
        eprintln!("{} {error:#}", terminal::red("error:"));
        ExitCode::FAILURE
    })
}
