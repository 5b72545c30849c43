//! WASI 0.3, for the engine of components with async functions alone.
//!
//! What `wasmtime-wasi` has for it is young: each part in which a guest could have the host hold more than the call's
//! [`Account`](crate::account::Account) allows, wait longer than the call, or reach what the grant does not name is written
//! anew here, or wrapped. The same rules hold as for WASI 0.2 ([`wasi`](crate::wasi)): the same requests and connections, the
//! same clocks, the same streams. Files are closed, as nothing here bounds them.

mod cli;
mod client;
mod clocks;
mod closed;
mod filesystem;
mod http;
mod names;
mod options;
mod pieces;
mod socket;
mod sockets;
mod version;

use wasmtime::component::Linker;

use crate::state::State;

/// Adds WASI 0.3 to a linker.
pub(crate) fn add(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    cli::add(linker)?;
    clocks::add(linker)?;
    // Whatever a guest asks for, it gets `limits.random` bytes at most: a short answer is allowed.
    wasmtime_wasi::p3::random::add_to_linker(linker)?;
    filesystem::add(linker)?;
    sockets::add(linker)?;
    names::add(linker)?;
    wasmtime_wasi_http::p3::add_to_linker(linker)?;
    linker.allow_shadowing(true);
    http::replace(linker)?;
    client::replace(linker)?;
    linker.allow_shadowing(false);
    Ok(())
}

#[cfg(test)]
mod tests {
    use wit_component::{ComponentEncoder, StringEncoding, dummy_module, embed_component_metadata};
    use wit_parser::{LiftLowerAbi, ManglingAndAbi, Resolve};

    use crate::trial::{Loaded, sandbox};

    /// The interfaces, as the guests of tests have them.
    const WIT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/guests/wasi3/wit");

    #[test]
    fn every_function_of_wasi_0_3_can_be_imported() {
        let mut resolve = Resolve::default();
        let (package, _) = resolve.push_dir(WIT).unwrap();
        let world = resolve.select_world(&[package], Some("all")).unwrap();
        let mut module = dummy_module(&resolve, world, ManglingAndAbi::Legacy(LiftLowerAbi::Sync));
        embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8).unwrap();
        let component = ComponentEncoder::default().module(&module).unwrap().encode().unwrap();
        let loaded = Loaded::new(&sandbox(), component).unwrap_or_else(|why| panic!("{why}"));
        assert_eq!(loaded.form(), "it exports plain functions; each is a tool; it is for WASI 0.3");
    }
}
