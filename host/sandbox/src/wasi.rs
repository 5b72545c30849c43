//! The parts of WASI that Toolbay replaces: those in which a guest could have the host hold more than the call's
//! [`Account`](crate::account::Account) allows, or a thread wait for something that never comes.
//!
//! Each replacement does what `wasmtime-wasi` does, within bounds. Everything else of WASI is linked unchanged.

mod files;
mod http;
mod listing;
mod sockets;
mod stream;

use wasmtime::component::Linker;

use crate::state::State;

pub(crate) use self::http::{BODY, FIELDS};

/// The version of the interfaces that `wasmtime-wasi` links. A replacement must have the same name; a test with a guest
/// for each fails otherwise.
macro_rules! versioned {
    ($interface:literal) => {
        concat!($interface, "@0.2.12")
    };
}
use versioned;

/// Replaces functions in a linker that has all of WASI.
pub(crate) fn replace(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    linker.allow_shadowing(true);
    files::replace(linker)?;
    listing::replace(linker)?;
    http::replace(linker)?;
    sockets::replace(linker)?;
    linker.allow_shadowing(false);
    Ok(())
}
