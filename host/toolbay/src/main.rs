//! The `toolbay` program: everything is in the library.

use std::process::ExitCode;

use clap::Parser as _;

/// Half the time of the system's in what a call allocates, and it gives back what is free within milliseconds.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    toolbay::Cli::parse().run()
}
