//! Opens files and directories, in mounts with and without a quota.

use wasmtime::component::Resource;
use wasmtime_wasi::filesystem::{Descriptor, WasiFilesystemCtxView};
use wasmtime_wasi::p2::FsResult;
use wasmtime_wasi::p2::bindings::filesystem::types::{
    DescriptorFlags, DescriptorType, ErrorCode, HostDescriptor as _, OpenFlags, PathFlags,
};

/// Handle of a file or a directory.
pub(super) type OpenedFile = Resource<Descriptor>;

/// Converts the result of a host function: an error code for the guest, or an error that ends the
/// call.
pub(super) fn to_guest_result<T>(result: FsResult<T>) -> wasmtime::Result<Result<T, ErrorCode>> {
    match result {
        Ok(value) => Ok(Ok(value)),
        Err(error) => error.downcast().map(Err),
    }
}

/// Arguments of `open-at`.
pub(super) struct OpenRequest {
    pub(super) path_flags: PathFlags,
    pub(super) path: String,
    pub(super) open_flags: OpenFlags,
    pub(super) flags: DescriptorFlags,
}

impl OpenRequest {
    /// Returns whether opening can change the directory.
    pub(super) fn creates_or_truncates(&self) -> bool {
        self.open_flags
            .intersects(OpenFlags::CREATE | OpenFlags::TRUNCATE)
    }

    /// Returns whether the opened file is writable.
    pub(super) fn opens_for_writing(&self) -> bool {
        self.flags.contains(DescriptorFlags::WRITE)
    }

    /// Opens a file or a directory. Rejects FIFOs, devices and sockets both before and after
    /// opening: opening or reading one can block a host thread forever.
    pub(super) async fn open(
        self,
        files: &mut WasiFilesystemCtxView<'_>,
        folder: &OpenedFile,
    ) -> FsResult<OpenedFile> {
        let Self {
            path_flags,
            path,
            open_flags,
            flags,
        } = self;
        let borrow_folder = || Resource::new_borrow(folder.rep());
        // If `stat` fails, the path cannot be opened either, or does not exist yet.
        if let Ok(stat) = files
            .stat_at(borrow_folder(), path_flags, path.clone())
            .await
        {
            check_openable(stat.type_)?;
        }
        let opened = files
            .open_at(borrow_folder(), path_flags, path, open_flags, flags)
            .await?;
        let opened_stat = files.stat(Resource::new_borrow(opened.rep())).await;
        let check = match opened_stat {
            Ok(stat) => check_openable(stat.type_),
            Err(error) => Err(error),
        };
        if let Err(error) = check {
            files.table.delete(opened)?;
            return Err(error);
        }
        Ok(opened)
    }
}

/// Checks whether a file of this type may be opened. The host follows symbolic links, and rejects
/// them if the guest did not request that.
fn check_openable(kind: DescriptorType) -> FsResult<()> {
    match kind {
        DescriptorType::RegularFile | DescriptorType::Directory | DescriptorType::SymbolicLink => {
            Ok(())
        }
        _ => Err(ErrorCode::NotPermitted.into()),
    }
}
