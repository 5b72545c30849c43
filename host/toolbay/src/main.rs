//! The `toolbay` program: everything is in the library.

use std::process::ExitCode;

use clap::Parser as _;
use tikv_jemallocator::Jemalloc;

/// Calls of many clients over HTTP allocate on one thread and free on another. The system's allocator serialises that.
#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

/// What calls have left goes back to the system half a second later. The thread that does it where nobody else does
/// (`memory`) is started when the server is confined. The allocator reads the settings before `main`.
#[used]
#[allow(unsafe_code, reason = "jemalloc looks for a symbol with this name and type (`const char *malloc_conf`)")]
#[unsafe(export_name = "_rjem_malloc_conf")]
static SETTINGS: &[u8; 85] = b"background_thread:false,max_background_threads:1,dirty_decay_ms:500,muzzy_decay_ms:0\0";

fn main() -> ExitCode {
    toolbay::Cli::parse().run()
}
