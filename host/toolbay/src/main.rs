//! The `toolbay` program. The code is in the library.

use std::process::ExitCode;

use clap::Parser as _;
use tikv_jemallocator::Jemalloc;

/// With many HTTP clients, one thread allocates and another one frees. The system's allocator
/// serializes that.
#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

/// Returns freed memory to the system after 500 ms. The background thread that does so for idle
/// threads (see `process::allocator`) starts only once the server is confined. The allocator reads
/// these settings before `main`.
#[used]
#[allow(
    unsafe_code,
    reason = "jemalloc looks for a symbol with this name and type (`const char *malloc_conf`)"
)]
#[unsafe(export_name = "_rjem_malloc_conf")]
static MALLOC_CONF: &[u8; 85] =
    b"background_thread:false,max_background_threads:1,dirty_decay_ms:500,muzzy_decay_ms:0\0";

fn main() -> ExitCode {
    toolbay::Cli::parse().run()
}
