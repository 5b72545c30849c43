//! Changes that finish even if their call ends.

use std::io;

use wasmtime::component::{Resource, ResourceTable};
use wasmtime_wasi::filesystem::{Descriptor, WasiFilesystemCtx, WasiFilesystemCtxView};
use wasmtime_wasi::p2::FsResult;
use wasmtime_wasi::p2::bindings::filesystem::types::{
    DescriptorFlags, DescriptorType, HostDescriptor as _, OpenFlags, PathFlags,
};

use crate::context::usage_ledger::{CallQuota, ChangePermit, DirectoryUsage};
use crate::wasi::p2::open_at::{OpenRequest, OpenedFile};

/// The usage of one file, directory or link.
pub(super) const ONE_ENTRY: DirectoryUsage = DirectoryUsage {
    bytes: 0,
    entries: 1,
};

/// A `wasmtime-wasi` file system that is independent of the call, so that a change can finish after
/// the call has ended.
#[derive(Default)]
pub(super) struct DetachedFiles {
    context: WasiFilesystemCtx,
    pub(super) table: ResourceTable,
}

impl DetachedFiles {
    /// Creates a file system that contains this file or directory, and returns its handle.
    pub(super) fn with_descriptor(descriptor: Descriptor) -> FsResult<(Self, OpenedFile)> {
        let mut detached = Self::default();
        let file = detached.table.push(descriptor)?;
        Ok((detached, file))
    }

    pub(super) fn view(&mut self) -> WasiFilesystemCtxView<'_> {
        WasiFilesystemCtxView {
            ctx: &mut self.context,
            table: &mut self.table,
        }
    }

    /// Returns whether the path exists. It may be a link.
    pub(super) async fn exists(&mut self, folder: &OpenedFile, path: &str) -> bool {
        self.view()
            .stat_at(reborrow(folder), PathFlags::empty(), path.to_owned())
            .await
            .is_ok()
    }
}

/// The entry at a path that is about to be removed or replaced.
pub(super) struct RemovedEntry(Option<Descriptor>);

impl RemovedEntry {
    /// Returns the entry at a path; `None` if there is none.
    pub(super) async fn find(
        detached: &mut DetachedFiles,
        folder: &OpenedFile,
        path: &str,
    ) -> Option<Self> {
        let flags = PathFlags::empty();
        let stat = detached
            .view()
            .stat_at(reborrow(folder), flags, path.to_owned())
            .await
            .ok()?;
        if stat.type_ != DescriptorType::RegularFile {
            return Some(Self(None));
        }
        // The open file shows afterwards whether this was its last name, and how long the file is.
        let open_flags = OpenFlags::empty();
        let read = DescriptorFlags::READ;
        let request = OpenRequest {
            path_flags: flags,
            path: path.to_owned(),
            open_flags,
            flags: read,
        };
        let opened = request.open(&mut detached.view(), folder).await.ok();
        Some(Self(
            opened.and_then(|opened| detached.table.delete(opened).ok()),
        ))
    }

    /// Records that the entry was removed.
    pub(super) fn record_removal(self, change: &ChangePermit) {
        change.add_entries(-1);
        if let Some(Descriptor::File(file)) = self.0 {
            change.record_removal(&file.file);
        }
    }
}

pub(super) fn reborrow(file: &OpenedFile) -> OpenedFile {
    Resource::new_borrow(file.rep())
}

/// Runs a change to completion, even if the call ends.
pub(super) async fn run_to_completion<T: Send + 'static>(
    work: impl Future<Output = FsResult<T>> + Send + 'static,
) -> FsResult<T> {
    tokio::spawn(work)
        .await
        .unwrap_or_else(|error| Err(io::Error::other(error).into()))
}

/// Acquires the right to create an entry at this path. If the path exists, creating the entry fails
/// anyway and needs no space.
pub(super) async fn acquire_entry_change(
    quota: &CallQuota,
    detached: &mut DetachedFiles,
    folder: &OpenedFile,
    path: &str,
) -> FsResult<ChangePermit> {
    let change = quota.ledger.change().await?;
    if detached.exists(folder, path).await {
        return Ok(change);
    }
    Ok(change.ensure_space(quota, ONE_ENTRY).await?)
}
