//! Replacements for the parts of WASI in which a guest could make the host hold more memory than
//! the call's [`Account`](crate::account::Account) allows, could block a thread indefinitely, or
//! gets answers that a recording must contain.
//!
//! Each replacement behaves like `wasmtime-wasi`, within bounds. The rest of WASI is linked
//! unchanged. This module also adds the interfaces that `wasmtime-wasi` does not have:
//! configuration, logging and state.

mod clocks;
mod config;
mod counted;
mod files;
mod handler;
mod http;
mod keyvalue;
mod listing;
mod logging;
mod nowhere;
mod opening;
mod poll;
mod quota;
mod reached;
mod sockets;
mod stream;
mod version;

use wasmtime::component::Linker;

use crate::state::StoreState;

/// Replaces functions in a linker that has all of WASI.
pub(crate) fn replace(linker: &mut Linker<StoreState>) -> wasmtime::Result<()> {
    linker.allow_shadowing(true);
    files::replace(linker)?;
    nowhere::replace(linker)?;
    quota::replace(linker)?;
    listing::replace(linker)?;
    http::replace(linker)?;
    handler::replace(linker)?;
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
