//! Files: their streams are drawn from the call's account, and what is not a file or a folder is not opened.

use wasmtime::component::{Linker, Resource};
use wasmtime_wasi::filesystem::{Descriptor, WasiFilesystemView as _};
use wasmtime_wasi::p2::bindings::filesystem::types::{
    DescriptorFlags, DescriptorType, ErrorCode, HostDescriptor as _, OpenFlags, PathFlags,
};
use wasmtime_wasi::p2::{DynInputStream, DynOutputStream, FsResult};

use super::stream::{BUFFER, Metered};
use super::version::versioned;
use crate::state::State;

type File = Resource<Descriptor>;

pub(super) fn replace(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    let mut types = linker.instance(versioned!("wasi:filesystem/types"))?;
    types.func_wrap_async(
        "[method]descriptor.open-at",
        |mut store,
         (folder, path_flags, path, open_flags, flags): (File, PathFlags, String, OpenFlags, DescriptorFlags)| {
            Box::new(async move {
                let opened = open(store.data_mut(), folder, path_flags, path, open_flags, flags).await;
                Ok((answered(opened)?,))
            })
        },
    )?;
    types.func_wrap("[method]descriptor.read-via-stream", |mut store, (file, offset): (File, u64)| {
        Ok((answered(input(store.data_mut(), file, offset))?,))
    })?;
    types.func_wrap("[method]descriptor.write-via-stream", |mut store, (file, offset): (File, u64)| {
        Ok((answered(output(store.data_mut(), file, Some(offset)))?,))
    })?;
    types.func_wrap("[method]descriptor.append-via-stream", |mut store, (file,): (File,)| {
        Ok((answered(output(store.data_mut(), file, None))?,))
    })
}

/// The answer of a host function: an error code for the guest, or an error that ends the call.
pub(super) fn answered<T>(result: FsResult<T>) -> wasmtime::Result<Result<T, ErrorCode>> {
    match result {
        Ok(value) => Ok(Ok(value)),
        Err(error) => error.downcast().map(Err),
    }
}

/// Opens a file or a folder. A FIFO, a device and a socket are refused before and after: to open one, or to read from
/// it, can take a thread of the host for ever.
async fn open(
    state: &mut State,
    folder: File,
    path_flags: PathFlags,
    path: String,
    open_flags: OpenFlags,
    flags: DescriptorFlags,
) -> FsResult<File> {
    let mut files = state.filesystem();
    let again = || Resource::new_borrow(folder.rep());
    // What cannot be looked at cannot be opened either, or does not exist yet.
    if let Ok(found) = files.stat_at(again(), path_flags, path.clone()).await {
        is_opened(found.type_)?;
    }
    let opened = files.open_at(again(), path_flags, path, open_flags, flags).await?;
    let now = files.stat(Resource::new_borrow(opened.rep())).await;
    let allowed = match now {
        Ok(found) => is_opened(found.type_),
        Err(error) => Err(error),
    };
    if let Err(error) = allowed {
        files.table.delete(opened)?;
        return Err(error);
    }
    Ok(opened)
}

/// Links are the host's to follow; it refuses them where the guest did not ask for that.
fn is_opened(kind: DescriptorType) -> FsResult<()> {
    match kind {
        DescriptorType::RegularFile | DescriptorType::Directory | DescriptorType::SymbolicLink => Ok(()),
        _ => Err(ErrorCode::NotPermitted.into()),
    }
}

fn input(state: &mut State, file: File, offset: u64) -> FsResult<Resource<DynInputStream>> {
    let stream = state.filesystem().read_via_stream(file, offset)?;
    let buffer = state.account.hold(BUFFER)?;
    let table = state.filesystem().table;
    let stream: DynInputStream = Box::new(Metered::new(table.delete(stream)?, buffer));
    Ok(table.push(stream)?)
}

/// A stream that writes from `offset` on, or at the end of the file.
fn output(state: &mut State, file: File, offset: Option<u64>) -> FsResult<Resource<DynOutputStream>> {
    let mut files = state.filesystem();
    let stream = match offset {
        Some(offset) => files.write_via_stream(file, offset)?,
        None => files.append_via_stream(file)?,
    };
    let buffer = state.account.hold(BUFFER)?;
    let table = state.filesystem().table;
    let stream: DynOutputStream = Box::new(Metered::new(table.delete(stream)?, buffer));
    Ok(table.push(stream)?)
}
