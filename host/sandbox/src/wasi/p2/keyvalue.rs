//! `wasi:keyvalue`: the plugin's persistent state. Without a grant, opening a bucket fails.

mod batch;
mod draft;
mod draft2;
mod guest_result;
mod operation;

use wasmtime::component::Linker;

use crate::store::state::StoreState;

/// Adds both drafts.
pub(super) fn add(linker: &mut Linker<StoreState>) -> wasmtime::Result<()> {
    draft::add(linker)?;
    draft2::add(linker)
}
