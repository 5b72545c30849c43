//! Linking of all imports that a component can have. Linking is not permission: without a grant,
//! their use is denied.

use wasmtime::Engine;
use wasmtime::component::Linker;

use crate::kind::contract;
use crate::store::state::StoreState;
use crate::wasi::p2;
use crate::wasi::p3;

/// Prefixes of the names of all imports that a plugin can have. They are always linked. The grant
/// decides about their use.
pub const IMPORT_PREFIXES: [&str; 11] = [
    "toolbay:plugin/",
    "wasi:cli/",
    "wasi:clocks/",
    "wasi:config/",
    "wasi:filesystem/",
    "wasi:http/",
    "wasi:io/",
    "wasi:keyvalue/",
    "wasi:logging/",
    "wasi:random/",
    "wasi:sockets/",
];

/// Returns a linker with everything that a plugin can import. If `has_wasi_p3` is set, it includes
/// WASI 0.3.
pub(crate) fn build_linker(
    engine: &Engine,
    has_wasi_p3: bool,
) -> wasmtime::Result<Linker<StoreState>> {
    let mut linker = Linker::new(engine);
    wasmtime_wasi::p2::add_to_linker_async(&mut linker)?;
    wasmtime_wasi_http::p2::add_only_http_to_linker_async(&mut linker)?;
    p2::replace(&mut linker)?;
    p2::add(&mut linker)?;
    contract::add_to_linker(&mut linker)?;
    if has_wasi_p3 {
        p3::add(&mut linker)?;
    }
    Ok(linker)
}
