//! WASI 0.3, only for the engine of components with async functions.
//!
//! The WASI 0.3 implementation of `wasmtime-wasi` is new. This module wraps or reimplements each
//! part in which a guest could make the host hold more memory than the call's
//! [`MemoryBudget`](crate::capability::memory_budget::MemoryBudget) allows, could wait longer than
//! the call, or could reach resources that the grant does not name. The rules are those of WASI 0.2
//! ([`wasi`](crate::wasi::p2)), with the same requests, connections, clocks and streams. Files are
//! not available, because nothing here bounds them.

mod cli;
mod clocks;
mod closed_resources;
mod filesystem;
mod http;
mod http_client;
mod name_lookup;
mod socket_options;
mod sockets;
mod stream_chunks;
mod tcp_socket;
mod version;

use wasmtime::component::Linker;

use crate::store::state::StoreState;

/// Adds WASI 0.3 to a linker.
pub(crate) fn add(linker: &mut Linker<StoreState>) -> wasmtime::Result<()> {
    cli::add(linker)?;
    clocks::add(linker)?;
    // WASI 0.3 allows short results, so a request returns at most `limits.random` bytes.
    wasmtime_wasi::p3::random::add_to_linker(linker)?;
    filesystem::add(linker)?;
    sockets::add(linker)?;
    name_lookup::add(linker)?;
    wasmtime_wasi_http::p3::add_to_linker(linker)?;
    linker.allow_shadowing(true);
    http::replace(linker)?;
    http_client::replace(linker)?;
    linker.allow_shadowing(false);
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
    use wit_parser::abi::{AbiVariant, WasmType};
    use wit_parser::{Function, Resolve, WorldId, WorldItem};

    use crate::test_sandbox::{TrialComponent, sandbox};

    /// The interfaces that the test guests import.
    const WIT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/guests/wasi3/wit");

    /// Returns the core type of a function.
    fn signature(resolve: &Resolve, variant: AbiVariant, function: &Function) -> String {
        let signature = resolve.wasm_signature(variant, function);
        let types = |types: &[WasmType]| -> String {
            let name = |ty: &WasmType| match ty {
                WasmType::I64 | WasmType::PointerOrI64 => " i64",
                WasmType::F32 => " f32",
                WasmType::F64 => " f64",
                WasmType::I32 | WasmType::Pointer | WasmType::Length => " i32",
            };
            types.iter().map(name).collect()
        };
        format!(
            "(param{}) (result{})",
            types(&signature.params),
            types(&signature.results)
        )
    }

    /// Returns a module that imports every function of a world's interfaces, and exports the
    /// world's functions.
    fn module(resolve: &Resolve, world: WorldId) -> Vec<u8> {
        let world = &resolve.worlds[world];
        let mut text = "(module".to_owned();
        for (key, item) in &world.imports {
            let WorldItem::Interface { id, .. } = item else {
                continue;
            };
            let interface = resolve.name_world_key(key);
            for (name, function) in &resolve.interfaces[*id].functions {
                let ty = signature(resolve, AbiVariant::GuestImport, function);
                let _ = write!(text, "(import {interface:?} {name:?} (func {ty}))");
            }
        }
        for (_, item) in &world.exports {
            let WorldItem::Function(function) = item else {
                continue;
            };
            let ty = signature(resolve, AbiVariant::GuestExport, function);
            let _ = write!(text, "(func (export {:?}) {ty} unreachable)", function.name);
        }
        text += r#"(memory (export "memory") 0)
            (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) unreachable))"#;
        wat::parse_str(text).unwrap()
    }

    #[test]
    fn every_function_of_wasi_0_3_can_be_imported() {
        let mut resolve = Resolve::default();
        let (package, _) = resolve.push_dir(WIT).unwrap();
        let world = resolve.select_world(&[package], Some("all")).unwrap();
        let mut module = module(&resolve, world);
        embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8).unwrap();
        let component = ComponentEncoder::default()
            .module(&module)
            .unwrap()
            .encode()
            .unwrap();
        let loaded =
            TrialComponent::new(&sandbox(), component).unwrap_or_else(|why| panic!("{why}"));
        assert_eq!(
            loaded.form(),
            "it exports plain functions; each is a tool; it is for WASI 0.3"
        );
    }
}
