//! Changes to the entries of directories.

use wasmtime_wasi::filesystem::{Descriptor, WasiFilesystemView as _};
use wasmtime_wasi::p2::FsResult;
use wasmtime_wasi::p2::bindings::filesystem::types::{ErrorCode, HostDescriptor as _, PathFlags};

use super::detached_files::{
    DetachedFiles, RemovedEntry, acquire_entry_change, reborrow, run_to_completion,
};
use super::file_changes::{note_file_change, writable_quota};
use crate::context::usage_ledger::CallQuota;
use crate::store::state::StoreState;
use crate::wasi::p2::open_at::OpenedFile;
use crate::wasi::p2::path_denial::PathAccess;

pub(super) async fn create_folder(
    state: &mut StoreState,
    folder: OpenedFile,
    path: String,
) -> FsResult<()> {
    let path_access = PathAccess::for_change(&folder, &path);
    path_access.check_mounted(state)?;
    let result = create_folder_in(state, folder, path).await;
    path_access.report_if_prohibited(state, result).await
}

async fn create_folder_in(
    state: &mut StoreState,
    folder: OpenedFile,
    path: String,
) -> FsResult<()> {
    note_file_change(state, &folder);
    let Some((quota, descriptor)) = writable_quota(state, &folder)? else {
        return state.filesystem().create_directory_at(folder, path).await;
    };
    let (mut detached, folder) = DetachedFiles::with_descriptor(descriptor)?;
    let change = acquire_entry_change(&quota, &mut detached, &folder, &path).await?;
    run_to_completion(async move {
        detached.view().create_directory_at(folder, path).await?;
        change.add_entries(1);
        Ok(())
    })
    .await
}

pub(super) async fn symlink(
    state: &mut StoreState,
    folder: OpenedFile,
    target: String,
    path: String,
) -> FsResult<()> {
    let path_access = PathAccess::for_change(&folder, &path);
    path_access.check_mounted(state)?;
    let result = symlink_in(state, folder, target, path).await;
    path_access.report_if_prohibited(state, result).await
}

async fn symlink_in(
    state: &mut StoreState,
    folder: OpenedFile,
    target: String,
    path: String,
) -> FsResult<()> {
    note_file_change(state, &folder);
    let Some((quota, descriptor)) = writable_quota(state, &folder)? else {
        return state.filesystem().symlink_at(folder, target, path).await;
    };
    let (mut detached, folder) = DetachedFiles::with_descriptor(descriptor)?;
    let change = acquire_entry_change(&quota, &mut detached, &folder, &path).await?;
    run_to_completion(async move {
        detached.view().symlink_at(folder, target, path).await?;
        change.add_entries(1);
        Ok(())
    })
    .await
}

/// Source and target directory of a rename or a link.
enum FolderPair {
    /// Neither has a quota.
    NoQuota,
    /// Both have this quota.
    SameQuota(CallQuota, [Descriptor; 2]),
}

/// Returns the quota of two directories.
///
/// # Errors
///
/// Returns [`ErrorCode::CrossDevice`] if only one directory has a quota, or if the quotas differ. A
/// program must then copy, as it must between file systems.
fn check_pair(state: &mut StoreState, from: &OpenedFile, to: &OpenedFile) -> FsResult<FolderPair> {
    match (writable_quota(state, from)?, writable_quota(state, to)?) {
        (None, None) => Ok(FolderPair::NoQuota),
        (Some((from_quota, from)), Some((to_quota, to))) if from_quota.shares_ledger(&to_quota) => {
            Ok(FolderPair::SameQuota(to_quota, [from, to]))
        }
        _ => Err(ErrorCode::CrossDevice.into()),
    }
}

pub(super) async fn link(
    state: &mut StoreState,
    folder: OpenedFile,
    flags: PathFlags,
    path: String,
    target_folder: OpenedFile,
    target_name: String,
) -> FsResult<()> {
    let path_accesses = [
        PathAccess::for_change(&folder, &path),
        PathAccess::for_change(&target_folder, &target_name),
    ];
    path_accesses
        .iter()
        .try_for_each(|path_access| path_access.check_mounted(state))?;
    let mut result = link_in(state, folder, flags, path, target_folder, target_name).await;
    for path_access in path_accesses {
        result = path_access.report_if_prohibited(state, result).await;
    }
    result
}

async fn link_in(
    state: &mut StoreState,
    folder: OpenedFile,
    flags: PathFlags,
    path: String,
    to: OpenedFile,
    name: String,
) -> FsResult<()> {
    note_file_change(state, &to);
    let FolderPair::SameQuota(quota, [from_descriptor, to_descriptor]) =
        check_pair(state, &folder, &to)?
    else {
        return state
            .filesystem()
            .link_at(folder, flags, path, to, name)
            .await;
    };
    let (mut detached, folder) = DetachedFiles::with_descriptor(from_descriptor)?;
    let to = detached.table.push(to_descriptor)?;
    let change = acquire_entry_change(&quota, &mut detached, &to, &name).await?;
    run_to_completion(async move {
        detached
            .view()
            .link_at(folder, flags, path, to, name)
            .await?;
        change.add_entries(1);
        Ok(())
    })
    .await
}

pub(super) async fn rename(
    state: &mut StoreState,
    folder: OpenedFile,
    path: String,
    target_folder: OpenedFile,
    target_name: String,
) -> FsResult<()> {
    let path_accesses = [
        PathAccess::for_change(&folder, &path),
        PathAccess::for_change(&target_folder, &target_name),
    ];
    path_accesses
        .iter()
        .try_for_each(|path_access| path_access.check_mounted(state))?;
    let mut result = rename_in(state, folder, path, target_folder, target_name).await;
    for path_access in path_accesses {
        result = path_access.report_if_prohibited(state, result).await;
    }
    result
}

async fn rename_in(
    state: &mut StoreState,
    folder: OpenedFile,
    path: String,
    to: OpenedFile,
    name: String,
) -> FsResult<()> {
    note_file_change(state, &folder);
    let FolderPair::SameQuota(quota, [from_descriptor, to_descriptor]) =
        check_pair(state, &folder, &to)?
    else {
        return state.filesystem().rename_at(folder, path, to, name).await;
    };
    let (mut detached, folder) = DetachedFiles::with_descriptor(from_descriptor)?;
    let to = detached.table.push(to_descriptor)?;
    let change = quota.ledger.change().await?;
    run_to_completion(async move {
        let replaced_entry = RemovedEntry::find(&mut detached, &to, &name).await;
        // If both paths name the same file, renaming keeps both.
        let is_same_file = {
            let flags = PathFlags::empty();
            let old = detached.view().metadata_hash_at(reborrow(&folder), flags, path.clone()).await;
            let new = detached.view().metadata_hash_at(reborrow(&to), flags, name.clone()).await;
            matches!((old, new), (Ok(old), Ok(new)) if (old.lower, old.upper) == (new.lower, new.upper))
        };
        detached.view().rename_at(folder, path, to, name).await?;
        if let (Some(replaced), false) = (replaced_entry, is_same_file) {
            replaced.record_removal(&change);
        }
        Ok(())
    })
    .await
}

pub(super) async fn unlink(
    state: &mut StoreState,
    folder: OpenedFile,
    path: String,
) -> FsResult<()> {
    let path_access = PathAccess::for_change(&folder, &path);
    path_access.check_mounted(state)?;
    let result = unlink_in(state, folder, path).await;
    path_access.report_if_prohibited(state, result).await
}

async fn unlink_in(state: &mut StoreState, folder: OpenedFile, path: String) -> FsResult<()> {
    note_file_change(state, &folder);
    let Some((quota, descriptor)) = writable_quota(state, &folder)? else {
        return state.filesystem().unlink_file_at(folder, path).await;
    };
    let (mut detached, folder) = DetachedFiles::with_descriptor(descriptor)?;
    let change = quota.ledger.change().await?;
    run_to_completion(async move {
        let removed = RemovedEntry::find(&mut detached, &folder, &path).await;
        detached.view().unlink_file_at(folder, path).await?;
        if let Some(entry) = removed {
            entry.record_removal(&change);
        }
        Ok(())
    })
    .await
}

pub(super) async fn remove_folder(
    state: &mut StoreState,
    folder: OpenedFile,
    path: String,
) -> FsResult<()> {
    let path_access = PathAccess::for_change(&folder, &path);
    path_access.check_mounted(state)?;
    let result = remove_folder_in(state, folder, path).await;
    path_access.report_if_prohibited(state, result).await
}

async fn remove_folder_in(
    state: &mut StoreState,
    folder: OpenedFile,
    path: String,
) -> FsResult<()> {
    note_file_change(state, &folder);
    let Some((quota, descriptor)) = writable_quota(state, &folder)? else {
        return state.filesystem().remove_directory_at(folder, path).await;
    };
    let (mut detached, folder) = DetachedFiles::with_descriptor(descriptor)?;
    let change = quota.ledger.change().await?;
    run_to_completion(async move {
        detached.view().remove_directory_at(folder, path).await?;
        change.add_entries(-1);
        Ok(())
    })
    .await
}
