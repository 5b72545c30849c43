//! Changes to the entries of directories.

use wasmtime_wasi::filesystem::{Descriptor, WasiFilesystemView as _};
use wasmtime_wasi::p2::FsResult;
use wasmtime_wasi::p2::bindings::filesystem::types::{ErrorCode, HostDescriptor as _, PathFlags};

use super::detached_files::{
    DetachedFiles, RemovedEntry, change_for_entry, reborrow, run_to_completion,
};
use super::file_changes::{note_file_change, writable_quota};
use crate::context::usage_ledger::CallQuota;
use crate::store::state::StoreState;
use crate::wasi::p2::open_at::OpenedFile;
use crate::wasi::p2::path_denial::UsedPath;

pub(super) async fn create_folder(
    state: &mut StoreState,
    folder: OpenedFile,
    path: String,
) -> FsResult<()> {
    let at = UsedPath::for_change(&folder, &path);
    at.check_mounted(state)?;
    let made = create_folder_in(state, folder, path).await;
    at.report_if_prohibited(state, made).await
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
    let (mut apart, folder) = DetachedFiles::with_descriptor(descriptor)?;
    let change = change_for_entry(&quota, &mut apart, &folder, &path).await?;
    run_to_completion(async move {
        apart.view().create_directory_at(folder, path).await?;
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
    let at = UsedPath::for_change(&folder, &path);
    at.check_mounted(state)?;
    let made = symlink_in(state, folder, target, path).await;
    at.report_if_prohibited(state, made).await
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
    let (mut apart, folder) = DetachedFiles::with_descriptor(descriptor)?;
    let change = change_for_entry(&quota, &mut apart, &folder, &path).await?;
    run_to_completion(async move {
        apart.view().symlink_at(folder, target, path).await?;
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
        (Some((one, from)), Some((two, to))) if one.shares_ledger(&two) => {
            Ok(FolderPair::SameQuota(two, [from, to]))
        }
        _ => Err(ErrorCode::CrossDevice.into()),
    }
}

pub(super) async fn link(
    state: &mut StoreState,
    folder: OpenedFile,
    flags: PathFlags,
    path: String,
    to: OpenedFile,
    name: String,
) -> FsResult<()> {
    let both = [
        UsedPath::for_change(&folder, &path),
        UsedPath::for_change(&to, &name),
    ];
    both.iter().try_for_each(|at| at.check_mounted(state))?;
    let mut made = link_in(state, folder, flags, path, to, name).await;
    for at in both {
        made = at.report_if_prohibited(state, made).await;
    }
    made
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
    let FolderPair::SameQuota(quota, [from, into]) = check_pair(state, &folder, &to)? else {
        return state
            .filesystem()
            .link_at(folder, flags, path, to, name)
            .await;
    };
    let (mut apart, folder) = DetachedFiles::with_descriptor(from)?;
    let to = apart.table.push(into)?;
    let change = change_for_entry(&quota, &mut apart, &to, &name).await?;
    run_to_completion(async move {
        apart.view().link_at(folder, flags, path, to, name).await?;
        change.add_entries(1);
        Ok(())
    })
    .await
}

pub(super) async fn rename(
    state: &mut StoreState,
    folder: OpenedFile,
    path: String,
    to: OpenedFile,
    name: String,
) -> FsResult<()> {
    let both = [
        UsedPath::for_change(&folder, &path),
        UsedPath::for_change(&to, &name),
    ];
    both.iter().try_for_each(|at| at.check_mounted(state))?;
    let mut made = rename_in(state, folder, path, to, name).await;
    for at in both {
        made = at.report_if_prohibited(state, made).await;
    }
    made
}

async fn rename_in(
    state: &mut StoreState,
    folder: OpenedFile,
    path: String,
    to: OpenedFile,
    name: String,
) -> FsResult<()> {
    note_file_change(state, &folder);
    let FolderPair::SameQuota(quota, [from, into]) = check_pair(state, &folder, &to)? else {
        return state.filesystem().rename_at(folder, path, to, name).await;
    };
    let (mut apart, folder) = DetachedFiles::with_descriptor(from)?;
    let to = apart.table.push(into)?;
    let change = quota.ledger.change().await?;
    run_to_completion(async move {
        let replaced = RemovedEntry::find(&mut apart, &to, &name).await;
        // If both paths name the same file, renaming keeps both.
        let same = {
            let flags = PathFlags::empty();
            let old = apart.view().metadata_hash_at(reborrow(&folder), flags, path.clone()).await;
            let new = apart.view().metadata_hash_at(reborrow(&to), flags, name.clone()).await;
            matches!((old, new), (Ok(old), Ok(new)) if (old.lower, old.upper) == (new.lower, new.upper))
        };
        apart.view().rename_at(folder, path, to, name).await?;
        if let (Some(replaced), false) = (replaced, same) {
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
    let at = UsedPath::for_change(&folder, &path);
    at.check_mounted(state)?;
    let made = unlink_in(state, folder, path).await;
    at.report_if_prohibited(state, made).await
}

async fn unlink_in(state: &mut StoreState, folder: OpenedFile, path: String) -> FsResult<()> {
    note_file_change(state, &folder);
    let Some((quota, descriptor)) = writable_quota(state, &folder)? else {
        return state.filesystem().unlink_file_at(folder, path).await;
    };
    let (mut apart, folder) = DetachedFiles::with_descriptor(descriptor)?;
    let change = quota.ledger.change().await?;
    run_to_completion(async move {
        let found = RemovedEntry::find(&mut apart, &folder, &path).await;
        apart.view().unlink_file_at(folder, path).await?;
        if let Some(found) = found {
            found.record_removal(&change);
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
    let at = UsedPath::for_change(&folder, &path);
    at.check_mounted(state)?;
    let made = remove_folder_in(state, folder, path).await;
    at.report_if_prohibited(state, made).await
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
    let (mut apart, folder) = DetachedFiles::with_descriptor(descriptor)?;
    let change = quota.ledger.change().await?;
    run_to_completion(async move {
        apart.view().remove_directory_at(folder, path).await?;
        change.add_entries(-1);
        Ok(())
    })
    .await
}
