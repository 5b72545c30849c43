//! An empty, read-only root for guests without a directory at `/`. Without it, the language
//! runtimes reject paths outside the preopened directories themselves, and the host does not learn
//! which paths a guest requests.
//!
//! Paths below the root do not exist, which is also what the language runtimes report without such
//! a root: programs probe for many optional files. Only opening, listing and changing count as
//! denied accesses; checking whether a path exists does not.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::LazyLock;

use wasmtime::component::{Linker, Resource};
use wasmtime_wasi::OpenMode;
use wasmtime_wasi::filesystem::{Descriptor, Dir, FsPerms, WasiFilesystemView as _};
use wasmtime_wasi::p2::FsResult;
use wasmtime_wasi::p2::bindings::filesystem::types::{
    DescriptorStat, DescriptorType, ErrorCode, HostDescriptor as _, MetadataHashValue,
    NewTimestamp, PathFlags,
};

use super::open_at::{OpenedFile as Handle, to_guest_result};
use super::path_denial::PathAccess;
use super::version::versioned;
use crate::capability::files::directory_reach::DirectoryReach;
use crate::store::state::StoreState;

/// Descriptor behind the handle of the empty root. It is a pipe and not a directory, so that a
/// function that this module does not replace finds nothing either. `None` if the process had no
/// descriptor left.
static EMPTY_ROOT: LazyLock<Option<Dir>> = LazyLock::new(|| {
    let (end, _) = io::pipe().ok()?;
    Some(Dir::new(
        File::from(OwnedFd::from(end)),
        FsPerms::ReadOnly,
        OpenMode::READ,
        false,
    ))
});

/// Creates a handle of the empty root.
pub(super) fn push_empty_root(state: &mut StoreState) -> wasmtime::Result<Option<Handle>> {
    let Some(root) = EMPTY_ROOT.clone() else {
        return Ok(None);
    };
    let handle = state.filesystem().table.push(Descriptor::Dir(root))?;
    state
        .directory_reach
        .insert(handle.rep(), DirectoryReach::NoMount);
    Ok(Some(handle))
}

/// Replaces the functions that inspect files and directories, and the one that sets their times.
/// They differ from `wasmtime-wasi` only for handles of the empty root.
pub(super) fn replace(linker: &mut Linker<StoreState>) -> wasmtime::Result<()> {
    let mut types = linker.instance(versioned!("wasi:filesystem/types"))?;
    types.func_wrap_async(
        "[method]descriptor.stat",
        |mut store, (file,): (Handle,)| {
            Box::new(async move { Ok((to_guest_result(stat(store.data_mut(), file).await)?,)) })
        },
    )?;
    types.func_wrap_async(
        "[method]descriptor.stat-at",
        |mut store, (folder, flags, path): (Handle, PathFlags, String)| {
            Box::new(async move {
                let state = store.data_mut();
                let result = if is_empty_root(state, &folder) {
                    Err(ErrorCode::NoEntry.into())
                } else {
                    state.filesystem().stat_at(folder, flags, path).await
                };
                Ok((to_guest_result(result)?,))
            })
        },
    )?;
    types.func_wrap_async(
        "[method]descriptor.readlink-at",
        |mut store, (folder, path): (Handle, String)| {
            Box::new(async move {
                let state = store.data_mut();
                let result = if is_empty_root(state, &folder) {
                    Err(ErrorCode::NoEntry.into())
                } else {
                    state.filesystem().readlink_at(folder, path).await
                };
                Ok((to_guest_result(result)?,))
            })
        },
    )?;
    types.func_wrap_async(
        "[method]descriptor.metadata-hash",
        |mut store, (file,): (Handle,)| {
            Box::new(async move {
                let state = store.data_mut();
                let hash = if is_empty_root(state, &file) {
                    Ok(MetadataHashValue { lower: 0, upper: 0 })
                } else {
                    state.filesystem().metadata_hash(file).await
                };
                Ok((to_guest_result(hash)?,))
            })
        },
    )?;
    types.func_wrap_async(
        "[method]descriptor.metadata-hash-at",
        |mut store, (folder, flags, path): (Handle, PathFlags, String)| {
            Box::new(async move {
                let state = store.data_mut();
                let hash = if is_empty_root(state, &folder) {
                    Err(ErrorCode::NoEntry.into())
                } else {
                    state
                        .filesystem()
                        .metadata_hash_at(folder, flags, path)
                        .await
                };
                Ok((to_guest_result(hash)?,))
            })
        },
    )?;
    types.func_wrap_async(
        "[method]descriptor.set-times-at",
        |mut store,
         (folder, flags, path, accessed, modified): (
            Handle,
            PathFlags,
            String,
            NewTimestamp,
            NewTimestamp,
        )| {
            Box::new(async move {
                let result =
                    set_times(store.data_mut(), folder, flags, path, accessed, modified).await;
                Ok((to_guest_result(result)?,))
            })
        },
    )
}

/// Returns whether this is a handle of the empty root.
pub(super) fn is_empty_root(state: &StoreState, folder: &Handle) -> bool {
    matches!(
        state.directory_reach.get(&folder.rep()),
        Some(DirectoryReach::NoMount)
    )
}

/// Returns the metadata of a file. The empty root looks like an empty directory.
async fn stat(state: &mut StoreState, file: Handle) -> FsResult<DescriptorStat> {
    if !is_empty_root(state, &file) {
        return state.filesystem().stat(file).await;
    }
    Ok(DescriptorStat {
        type_: DescriptorType::Directory,
        link_count: 1,
        size: 0,
        data_access_timestamp: None,
        data_modification_timestamp: None,
        status_change_timestamp: None,
    })
}

async fn set_times(
    state: &mut StoreState,
    folder: Handle,
    flags: PathFlags,
    path: String,
    accessed: NewTimestamp,
    modified: NewTimestamp,
) -> FsResult<()> {
    let path_access = PathAccess::for_change(&folder, &path);
    path_access.check_mounted(state)?;
    let folder_borrow = Resource::new_borrow(folder.rep());
    let result = state
        .filesystem()
        .set_times_at(folder_borrow, flags, path, accessed, modified)
        .await;
    path_access.report_if_prohibited(state, result).await
}
