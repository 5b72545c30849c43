//! Replacements for the parts of WASI in which a guest could make the host hold more memory than
//! the call's [`MemoryBudget`](crate::capability::memory_budget::MemoryBudget) allows, could block
//! a thread indefinitely, or receives values that a recording must contain.
//!
//! Each replacement behaves like `wasmtime-wasi`, within bounds. The rest of WASI is linked
//! unchanged. This module also adds the interfaces that `wasmtime-wasi` does not have:
//! configuration, logging and state.

mod clocks;
mod config;
mod counted_stream;
mod directory_listing;
mod empty_root;
mod files;
mod http;
mod keyvalue;
mod logging;
mod metered_stream;
mod open_at;
mod outgoing_handler;
mod path_denial;
mod poll;
mod quota;
mod sockets;
mod version;

use wasmtime::component::Linker;

use crate::store::state::StoreState;

/// Replaces functions in a linker that has all of WASI.
pub(crate) fn replace(linker: &mut Linker<StoreState>) -> wasmtime::Result<()> {
    linker.allow_shadowing(true);
    files::replace(linker)?;
    empty_root::replace(linker)?;
    quota::replace(linker)?;
    directory_listing::replace(linker)?;
    http::replace(linker)?;
    outgoing_handler::replace(linker)?;
    sockets::replace(linker)?;
    clocks::replace(linker)?;
    poll::replace(linker)?;
    linker.allow_shadowing(false);
    Ok(())
}

/// Adds the interfaces that `wasmtime-wasi` does not have.
pub(crate) fn add(linker: &mut Linker<StoreState>) -> wasmtime::Result<()> {
    config::add(linker)?;
    keyvalue::add(linker)?;
    logging::add(linker)
}
