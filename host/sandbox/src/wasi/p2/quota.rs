//! Changes to files and directories in a mount with a quota. Each change holds the exclusive right
//! to change the directory, and updates the directory's usage. In other mounts, `wasmtime-wasi`
//! performs the changes.
//!
//! Waiting for that right, or for the directory to be scanned, stops when the call ends. A change
//! that has started runs to completion and is recorded.

mod detached_files;
mod file_changes;
mod folder_changes;
mod writer;

use wasmtime::component::Linker;
use wasmtime_wasi::p2::bindings::filesystem::types::PathFlags;

pub(super) use self::file_changes::{note_file_change, open};
use self::file_changes::{set_size, write_at};
use self::folder_changes::{create_folder, link, remove_folder, rename, symlink, unlink};
pub(super) use self::writer::QuotaWriter;
use super::open_at::{OpenedFile, to_guest_result};
use super::version::versioned;
use crate::store::state::StoreState;

pub(super) fn replace(linker: &mut Linker<StoreState>) -> wasmtime::Result<()> {
    let mut types = linker.instance(versioned!("wasi:filesystem/types"))?;
    types.func_wrap_async(
        "[method]descriptor.write",
        |mut store, (file, bytes, offset): (OpenedFile, Vec<u8>, u64)| {
            Box::new(async move {
                Ok((to_guest_result(
                    write_at(store.data_mut(), file, bytes, offset).await,
                )?,))
            })
        },
    )?;
    types.func_wrap_async(
        "[method]descriptor.set-size",
        |mut store, (file, size): (OpenedFile, u64)| {
            Box::new(async move {
                Ok((to_guest_result(
                    set_size(store.data_mut(), file, size).await,
                )?,))
            })
        },
    )?;
    types.func_wrap_async(
        "[method]descriptor.create-directory-at",
        |mut store, (folder, path): (OpenedFile, String)| {
            Box::new(async move {
                Ok((to_guest_result(
                    create_folder(store.data_mut(), folder, path).await,
                )?,))
            })
        },
    )?;
    types.func_wrap_async(
        "[method]descriptor.symlink-at",
        |mut store, (folder, target, path): (OpenedFile, String, String)| {
            Box::new(async move {
                Ok((to_guest_result(
                    symlink(store.data_mut(), folder, target, path).await,
                )?,))
            })
        },
    )?;
    types.func_wrap_async(
        "[method]descriptor.link-at",
        |mut store, (folder, flags, path, to, name): (OpenedFile, PathFlags, String, OpenedFile, String)| {
            Box::new(
                async move { Ok((to_guest_result(link(store.data_mut(), folder, flags, path, to, name).await)?,)) },
            )
        },
    )?;
    types.func_wrap_async(
        "[method]descriptor.rename-at",
        |mut store, (folder, path, to, name): (OpenedFile, String, OpenedFile, String)| {
            Box::new(async move {
                Ok((to_guest_result(
                    rename(store.data_mut(), folder, path, to, name).await,
                )?,))
            })
        },
    )?;
    types.func_wrap_async(
        "[method]descriptor.unlink-file-at",
        |mut store, (folder, path): (OpenedFile, String)| {
            Box::new(async move {
                Ok((to_guest_result(
                    unlink(store.data_mut(), folder, path).await,
                )?,))
            })
        },
    )?;
    types.func_wrap_async(
        "[method]descriptor.remove-directory-at",
        |mut store, (folder, path): (OpenedFile, String)| {
            Box::new(async move {
                Ok((to_guest_result(
                    remove_folder(store.data_mut(), folder, path).await,
                )?,))
            })
        },
    )
}
