//! The `toolbay` program: everything is in the library.

use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    toolbay::cli::Cli::parse().run()
}
