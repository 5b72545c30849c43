//! Files are not available. A guest gets no preopened directory, and a descriptor can only be
//! opened from one.
//!
//! Mounted and temporary directories are available through WASI 0.2, within quotas and limits. If a
//! grant has such directories, a note says that they are not available.

use wasmtime::component::{Linker, Resource, ResourceType};

use super::closed_resources::ClosedFunction::{Async, Sync};
use super::closed_resources::{ClosedFunction, define_closed};
use super::version::versioned;
use crate::store::state::StoreState;

/// The type of files and directories. It has no values.
enum NoDescriptor {}

const DESCRIPTOR_FUNCTIONS: [ClosedFunction; 25] = [
    Sync("[method]descriptor.read-via-stream"),
    Sync("[method]descriptor.write-via-stream"),
    Sync("[method]descriptor.append-via-stream"),
    Async("[method]descriptor.advise"),
    Async("[method]descriptor.sync-data"),
    Async("[method]descriptor.get-flags"),
    Async("[method]descriptor.get-type"),
    Async("[method]descriptor.set-size"),
    Async("[method]descriptor.set-times"),
    Sync("[method]descriptor.read-directory"),
    Async("[method]descriptor.sync"),
    Async("[method]descriptor.create-directory-at"),
    Async("[method]descriptor.stat"),
    Async("[method]descriptor.stat-at"),
    Async("[method]descriptor.set-times-at"),
    Async("[method]descriptor.link-at"),
    Async("[method]descriptor.open-at"),
    Async("[method]descriptor.readlink-at"),
    Async("[method]descriptor.remove-directory-at"),
    Async("[method]descriptor.rename-at"),
    Async("[method]descriptor.symlink-at"),
    Async("[method]descriptor.unlink-file-at"),
    Async("[method]descriptor.is-same-object"),
    Async("[method]descriptor.metadata-hash"),
    Async("[method]descriptor.metadata-hash-at"),
];

pub(super) fn add(linker: &mut Linker<StoreState>) -> wasmtime::Result<()> {
    let mut preopens = linker.instance(versioned!("wasi:filesystem/preopens"))?;
    preopens.func_wrap("get-directories", |_, (): ()| {
        Ok((Vec::<(Resource<NoDescriptor>, String)>::new(),))
    })?;
    let mut types = linker.instance(versioned!("wasi:filesystem/types"))?;
    types.resource(
        "descriptor",
        ResourceType::host::<NoDescriptor>(),
        |_, _| Ok(()),
    )?;
    define_closed(&mut types, &DESCRIPTOR_FUNCTIONS)
}
