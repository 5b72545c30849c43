//! Changes to files, and the quota that they are subject to.

use bytes::Bytes;
use toolbay_model::Limit;
use wasmtime_wasi::filesystem::{Descriptor, WasiFilesystemView as _};
use wasmtime_wasi::p2::FsResult;
use wasmtime_wasi::p2::bindings::filesystem::types::{ErrorCode, HostDescriptor as _, OpenFlags};

use super::detached_files::{DetachedFiles, ONE_ENTRY, reborrow, run_to_completion};
use super::writer::{WriteOffset, resize, write};
use crate::capability::effects::AskBlocker;
use crate::context::usage_ledger::{CallQuota, file_length, inode_id};
use crate::store::state::StoreState;
use crate::wasi::p2::open_at::{OpenRequest, OpenedFile};

/// Records that the call changes files. Such a call can no longer ask its caller questions, because
/// the rerun with the answers would change the files again. The temporary directory is exempt: the
/// rerun gets a new one.
pub(in crate::wasi::p2) fn note_file_change(state: &mut StoreState, file: &OpenedFile) {
    let limit = state
        .quotas
        .get(&file.rep())
        .and_then(|quota| quota.bounds.bytes)
        .map(|(_, limit)| limit);
    if !matches!(limit, Some(Limit::ScratchSize(_))) {
        state.effects.block_questions(AskBlocker::FileChange);
    }
}

/// Returns the quota of a writable file or directory and the descriptor behind its handle; `None`
/// if there is no quota or it is not writable.
pub(super) fn writable_quota(
    state: &mut StoreState,
    file: &OpenedFile,
) -> FsResult<Option<(CallQuota, Descriptor)>> {
    let Some(quota) = state.quotas.get(&file.rep()).cloned() else {
        return Ok(None);
    };
    let descriptor = state.filesystem().table.get(file)?.clone();
    let is_read_only = match &descriptor {
        Descriptor::File(file) => file.perms.write_not_permitted(),
        Descriptor::Dir(folder) => folder.perms.write_not_permitted(),
    };
    Ok((!is_read_only).then_some((quota, descriptor)))
}

/// Opens a file, which may create or truncate it.
pub(in crate::wasi::p2) async fn open(
    quota: CallQuota,
    folder: Descriptor,
    request: OpenRequest,
) -> FsResult<Descriptor> {
    let (mut detached, folder) = DetachedFiles::with_descriptor(folder)?;
    let mut change = quota.ledger.change().await?;
    let creates = request.open_flags.contains(OpenFlags::CREATE);
    let existing = detached
        .view()
        .stat_at(reborrow(&folder), request.path_flags, request.path.clone())
        .await;
    let is_missing =
        matches!(&existing, Err(error) if matches!(error.downcast_ref(), Some(ErrorCode::NoEntry)));
    if creates && is_missing {
        change = change.ensure_space(&quota, ONE_ENTRY).await?;
    }
    let old_size = existing.map_or(0, |stat| stat.size);
    let truncates = request.open_flags.contains(OpenFlags::TRUNCATE);
    run_to_completion(async move {
        let handle = request.open(&mut detached.view(), &folder).await?;
        let descriptor = detached.table.delete(handle)?;
        if creates && is_missing {
            change.add_entries(1);
        } else if truncates
            && let Descriptor::File(file) = &descriptor
            && let Ok(stat) = rustix::fs::fstat(&*file.file)
        {
            change.update_length(inode_id(&stat), old_size, file_length(&stat));
        }
        Ok(descriptor)
    })
    .await
}

pub(super) async fn write_at(
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

pub(super) async fn set_size(state: &mut StoreState, file: OpenedFile, size: u64) -> FsResult<()> {
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
