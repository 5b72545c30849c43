//! Changes to files and directories in a mount with a quota. Each change holds the exclusive right
//! to change the directory, and updates the directory's usage. In other mounts, `wasmtime-wasi`
//! performs the changes.
//!
//! Waiting for that right, or for the directory to be scanned, stops when the call ends. A change
//! that has started runs to completion and is recorded.

mod writer;

use std::io;

use bytes::Bytes;
use toolbay_model::Limit;
use wasmtime::component::{Linker, Resource, ResourceTable};
use wasmtime_wasi::filesystem::{
    Descriptor, WasiFilesystemCtx, WasiFilesystemCtxView, WasiFilesystemView as _,
};
use wasmtime_wasi::p2::FsResult;
use wasmtime_wasi::p2::bindings::filesystem::types::{
    DescriptorFlags, DescriptorType, ErrorCode, HostDescriptor as _, OpenFlags, PathFlags,
};

pub(super) use self::writer::QuotaWriter;
use self::writer::{WriteOffset, resize, write};
use super::open_at::{OpenRequest, OpenedFile, to_guest_result};
use super::path_denial::UsedPath;
use super::version::versioned;
use crate::capability::effects::AskBlocker;
use crate::context::usage_ledger::{CallQuota, ChangePermit, DirectoryUsage, file_length};
use crate::store::state::StoreState;

/// The usage of one file, directory or link.
const ONE_ENTRY: DirectoryUsage = DirectoryUsage {
    bytes: 0,
    entries: 1,
};

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

/// A `wasmtime-wasi` file system that is independent of the call, so that a change can finish after
/// the call has ended.
#[derive(Default)]
struct DetachedFiles {
    context: WasiFilesystemCtx,
    table: ResourceTable,
}

impl DetachedFiles {
    /// Creates a file system that contains this file or directory, and returns its handle.
    fn with_descriptor(descriptor: Descriptor) -> FsResult<(Self, OpenedFile)> {
        let mut apart = Self::default();
        let file = apart.table.push(descriptor)?;
        Ok((apart, file))
    }

    fn view(&mut self) -> WasiFilesystemCtxView<'_> {
        WasiFilesystemCtxView {
            ctx: &mut self.context,
            table: &mut self.table,
        }
    }

    /// Returns whether the path exists. It may be a link.
    async fn exists(&mut self, folder: &OpenedFile, path: &str) -> bool {
        self.view()
            .stat_at(reborrow(folder), PathFlags::empty(), path.to_owned())
            .await
            .is_ok()
    }
}

/// The entry at a path that is about to be removed or replaced.
struct RemovedEntry(Option<Descriptor>);

impl RemovedEntry {
    /// Returns the entry at a path; `None` if there is none.
    async fn find(apart: &mut DetachedFiles, folder: &OpenedFile, path: &str) -> Option<Self> {
        let flags = PathFlags::empty();
        let found = apart
            .view()
            .stat_at(reborrow(folder), flags, path.to_owned())
            .await
            .ok()?;
        if found.type_ != DescriptorType::RegularFile {
            return Some(Self(None));
        }
        // The open file shows afterwards whether this was its last name, and how long the file is.
        let (open_flags, read) = (OpenFlags::empty(), DescriptorFlags::READ);
        let opening = OpenRequest {
            path_flags: flags,
            path: path.to_owned(),
            open_flags,
            flags: read,
        };
        let opened = opening.open(&mut apart.view(), folder).await.ok();
        Some(Self(
            opened.and_then(|opened| apart.table.delete(opened).ok()),
        ))
    }

    /// Records that the entry was removed.
    fn record_removal(self, change: &ChangePermit) {
        change.add_entries(-1);
        if let Some(Descriptor::File(file)) = self.0 {
            change.record_removal(&file.file);
        }
    }
}

fn reborrow(file: &OpenedFile) -> OpenedFile {
    Resource::new_borrow(file.rep())
}

/// Records that the call changes files. Such a call can no longer ask its caller questions, because
/// the rerun with the answers would change the files again. The temporary directory is exempt: the
/// rerun gets a new one.
pub(super) fn note_file_change(state: &mut StoreState, file: &OpenedFile) {
    let limit = state
        .quotas
        .get(&file.rep())
        .and_then(|quota| quota.bounds.bytes)
        .map(|(_, limit)| limit);
    if !matches!(limit, Some(Limit::ScratchSize(_))) {
        state.effects.block_questions(AskBlocker::File);
    }
}

/// Returns the quota of a writable file or directory and the descriptor behind its handle; `None`
/// if there is no quota or it is not writable.
fn writable_quota(
    state: &mut StoreState,
    file: &OpenedFile,
) -> FsResult<Option<(CallQuota, Descriptor)>> {
    let Some(quota) = state.quotas.get(&file.rep()).cloned() else {
        return Ok(None);
    };
    let descriptor = state.filesystem().table.get(file)?.clone();
    let read_only = match &descriptor {
        Descriptor::File(file) => file.perms.write_not_permitted(),
        Descriptor::Dir(folder) => folder.perms.write_not_permitted(),
    };
    Ok((!read_only).then_some((quota, descriptor)))
}

/// Runs a change to completion, even if the call ends.
async fn run_to_completion<T: Send + 'static>(
    work: impl Future<Output = FsResult<T>> + Send + 'static,
) -> FsResult<T> {
    tokio::spawn(work)
        .await
        .unwrap_or_else(|error| Err(io::Error::other(error).into()))
}

/// Acquires the right to create an entry at this path. If the path exists, creating the entry fails
/// anyway and needs no space.
async fn change_for_entry(
    quota: &CallQuota,
    apart: &mut DetachedFiles,
    folder: &OpenedFile,
    path: &str,
) -> FsResult<ChangePermit> {
    let change = quota.ledger.change().await?;
    if apart.exists(folder, path).await {
        return Ok(change);
    }
    Ok(change.ensure_space(quota, ONE_ENTRY).await?)
}

/// Opens a file, which may create or truncate it.
pub(super) async fn open(
    quota: CallQuota,
    folder: Descriptor,
    opening: OpenRequest,
) -> FsResult<Descriptor> {
    let (mut apart, folder) = DetachedFiles::with_descriptor(folder)?;
    let mut change = quota.ledger.change().await?;
    let creates = opening.open_flags.contains(OpenFlags::CREATE);
    let there = apart
        .view()
        .stat_at(reborrow(&folder), opening.path_flags, opening.path.clone())
        .await;
    let missing =
        matches!(&there, Err(error) if matches!(error.downcast_ref(), Some(ErrorCode::NoEntry)));
    if creates && missing {
        change = change.ensure_space(&quota, ONE_ENTRY).await?;
    }
    let before = there.map_or(0, |found| found.size);
    let truncates = opening.open_flags.contains(OpenFlags::TRUNCATE);
    run_to_completion(async move {
        let opened = opening.open(&mut apart.view(), &folder).await?;
        let opened = apart.table.delete(opened)?;
        if creates && missing {
            change.add_entries(1);
        } else if truncates
            && let Descriptor::File(file) = &opened
            && let Ok(found) = rustix::fs::fstat(&*file.file)
        {
            change.update_length(
                crate::context::usage_ledger::inode_id(&found),
                before,
                file_length(&found),
            );
        }
        Ok(opened)
    })
    .await
}

async fn write_at(
    state: &mut StoreState,
    file: OpenedFile,
    bytes: Vec<u8>,
    offset: u64,
) -> FsResult<u64> {
    note_file_change(state, &file);
    match writable_quota(state, &file)? {
        Some((quota, Descriptor::File(file))) => {
            let written = write(
                quota,
                file.file,
                Bytes::from(bytes),
                WriteOffset::Offset(offset),
            )
            .await?;
            Ok(written as u64)
        }
        _ => state.filesystem().write(file, bytes, offset).await,
    }
}

async fn set_size(state: &mut StoreState, file: OpenedFile, size: u64) -> FsResult<()> {
    note_file_change(state, &file);
    match writable_quota(state, &file)? {
        Some((quota, Descriptor::File(file))) => Ok(resize(
            quota,
            file.file,
            move |_| size,
            move |file| file.set_len(size),
        )
        .await?),
        _ => state.filesystem().set_size(file, size).await,
    }
}

async fn create_folder(state: &mut StoreState, folder: OpenedFile, path: String) -> FsResult<()> {
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

async fn symlink(
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

async fn link(
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

async fn rename(
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

async fn unlink(state: &mut StoreState, folder: OpenedFile, path: String) -> FsResult<()> {
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

async fn remove_folder(state: &mut StoreState, folder: OpenedFile, path: String) -> FsResult<()> {
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
