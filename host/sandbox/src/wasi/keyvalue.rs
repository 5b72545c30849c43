//! `wasi:keyvalue`: what a plugin keeps from one call to the next. What is not granted is denied when a bucket is opened.

mod answer;
mod batch;
mod draft;
mod draft2;
mod operation;

use wasmtime::component::Linker;

use crate::state::StoreState;

/// Adds both drafts.
pub(super) fn add(linker: &mut Linker<StoreState>) -> wasmtime::Result<()> {
    draft::add(linker)?;
    draft2::add(linker)
}
