//! The `toolbay` program: everything is in the library.

use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    toolbay::Cli::parse().run()
}
