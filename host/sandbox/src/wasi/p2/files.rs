//! Files and directories. Mounts are preopened directories. Stream buffers are charged to the
//! call's memory. Every open file counts against the process's descriptors. Only files and
//! directories can be opened.

use std::path::Path;
use std::sync::Arc;

use toolbay_recording::MissingInput;
use wasmtime::component::{Linker, Resource, ResourceType};
use wasmtime_wasi::filesystem::{Descriptor, WasiFilesystemView as _};
use wasmtime_wasi::p2::bindings::filesystem::types::{
    DescriptorFlags, ErrorCode, HostDescriptor as _, OpenFlags, PathFlags,
};
use wasmtime_wasi::p2::{DynInputStream, DynOutputStream, FsResult};

use super::empty_root;
use super::metered_stream::{MeteredStream, STREAM_BUFFER_BYTES};
use super::open_at::{OpenRequest, OpenedFile, to_guest_result};
use super::path_denial::{PathAccess, ROOT_PATH};
use super::quota::{self, QuotaWriter};
use super::version::versioned;
use crate::capability::files::descriptors::{DescriptorHandle, OpenDescriptor};
use crate::capability::files::directory_reach::DirectoryReach;
use crate::store::state::StoreState;

pub(super) fn replace(linker: &mut Linker<StoreState>) -> wasmtime::Result<()> {
    let mut preopens = linker.instance(versioned!("wasi:filesystem/preopens"))?;
    preopens.func_wrap("get-directories", |mut store, (): ()| {
        Ok((preopened_directories(store.data_mut())?,))
    })?;
    let mut types = linker.instance(versioned!("wasi:filesystem/types"))?;
    types.resource(
        "descriptor",
        ResourceType::host::<Descriptor>(),
        |mut store, rep| {
            let state = store.data_mut();
            state.open_files.remove(&rep);
            state.quotas.remove(&rep);
            state.directory_reach.remove(&rep);
            state.filesystem().table.delete(OpenedFile::new_own(rep))?;
            Ok(())
        },
    )?;
    types.func_wrap_async(
        "[method]descriptor.open-at",
        |mut store,
         (folder, path_flags, path, open_flags, flags): (
            OpenedFile,
            PathFlags,
            String,
            OpenFlags,
            DescriptorFlags,
        )| {
            Box::new(async move {
                let request = OpenRequest {
                    path_flags,
                    path,
                    open_flags,
                    flags,
                };
                let opened = open(store.data_mut(), folder, request).await;
                Ok((to_guest_result(opened)?,))
            })
        },
    )?;
    types.func_wrap(
        "[method]descriptor.read-via-stream",
        |mut store, (file, offset): (OpenedFile, u64)| {
            Ok((to_guest_result(open_input_stream(
                store.data_mut(),
                file,
                offset,
            ))?,))
        },
    )?;
    types.func_wrap(
        "[method]descriptor.write-via-stream",
        |mut store, (file, offset): (OpenedFile, u64)| {
            Ok((to_guest_result(open_output_stream(
                store.data_mut(),
                file,
                Some(offset),
            ))?,))
        },
    )?;
    types.func_wrap(
        "[method]descriptor.append-via-stream",
        |mut store, (file,): (OpenedFile,)| {
            Ok((to_guest_result(open_output_stream(
                store.data_mut(),
                file,
                None,
            ))?,))
        },
    )
}

/// Returns the mounted directories, and an empty root if no mount is the root. All calls share the
/// descriptors of these directories, so they do not count.
fn preopened_directories(state: &mut StoreState) -> wasmtime::Result<Vec<(OpenedFile, String)>> {
    if state.has_mounts {
        // A guest gets the preopens before it uses any file.
        state.tape.note_missing(MissingInput::Files);
    }
    let mounts = state.mounts.clone();
    let mut folders = Vec::with_capacity(mounts.len() + 1);
    for mounted in mounts {
        let reach = DirectoryReach::from_mounted(&mounted);
        let folder = state
            .filesystem()
            .table
            .push(Descriptor::Dir(mounted.dir))?;
        state.directory_reach.insert(folder.rep(), reach);
        if let Some(quota) = mounted.quota {
            state.quotas.insert(folder.rep(), quota);
        }
        folders.push((folder, mounted.guest));
    }
    // The root is the last entry: some languages use the first one as the current directory, and
    // adding the root must not change it.
    if !folders
        .iter()
        .any(|(_, guest)| Path::new(guest) == Path::new(ROOT_PATH))
        && let Some(root) = empty_root::push_empty_root(state)?
    {
        folders.push((root, ROOT_PATH.to_owned()));
    }
    Ok(folders)
}

/// Acquires a descriptor for another file. WASI has no error code for a process without free
/// descriptors; `busy` is the closest one.
pub(super) fn take_descriptor(state: &mut StoreState) -> FsResult<OpenDescriptor> {
    let descriptor = state.descriptors.acquire();
    if descriptor.is_none() && !std::mem::replace(&mut state.files_refused, true) {
        tracing::info!(
            target: "toolbay_sandbox::denied",
            "a file was not opened: the server has no descriptor left for this call (to allow more, raise `ulimit -n`)"
        );
    }
    descriptor.ok_or_else(|| ErrorCode::Busy.into())
}

/// Opens a file or a directory.
async fn open(
    state: &mut StoreState,
    folder: OpenedFile,
    request: OpenRequest,
) -> FsResult<OpenedFile> {
    let path_access = PathAccess::for_open(&folder, &request);
    path_access.check_mounted(state)?;
    let opened = open_in(state, folder, request).await;
    path_access.report_if_prohibited(state, opened).await
}

async fn open_in(
    state: &mut StoreState,
    folder: OpenedFile,
    request: OpenRequest,
) -> FsResult<OpenedFile> {
    let reserved_descriptor = take_descriptor(state)?;
    if request.creates_or_truncates() || request.opens_for_writing() {
        quota::note_file_change(state, &folder);
    }
    let quota = state.quotas.get(&folder.rep()).cloned();
    let mut files = state.filesystem();
    let opened = match (quota.clone(), files.table.get(&folder)?) {
        (Some(quota), Descriptor::Dir(dir))
            if request.creates_or_truncates() && !dir.perms.write_not_permitted() =>
        {
            let descriptor = quota::open(quota, Descriptor::Dir(dir.clone()), request).await?;
            state.filesystem().table.push(descriptor)?
        }
        _ => request.open(&mut files, &folder).await?,
    };
    let file = quota
        .as_ref()
        .and_then(|quota| match state.filesystem().table.get(&opened) {
            Ok(Descriptor::File(file)) => quota.ledger.track_open_file(&file.file),
            _ => None,
        });
    if let Some(quota) = quota {
        state.quotas.insert(opened.rep(), quota);
    }
    if let Some(reach) = state
        .directory_reach
        .get(&folder.rep())
        .map(DirectoryReach::subdirectory)
        && let Ok(Descriptor::Dir(_)) = state.filesystem().table.get(&opened)
    {
        state.directory_reach.insert(opened.rep(), reach);
    }
    state.open_files.insert(
        opened.rep(),
        Arc::new(DescriptorHandle::new(reserved_descriptor, file)),
    );
    Ok(opened)
}

fn open_input_stream(
    state: &mut StoreState,
    file: OpenedFile,
    offset: u64,
) -> FsResult<Resource<DynInputStream>> {
    let handle = state.open_files.get(&file.rep()).cloned();
    let stream = state.filesystem().read_via_stream(file, offset)?;
    let buffer = state.memory_budget.reserve(STREAM_BUFFER_BYTES)?;
    let table = state.filesystem().table;
    let stream: DynInputStream =
        Box::new(MeteredStream::new(table.delete(stream)?, buffer, handle));
    Ok(table.push(stream)?)
}

/// Returns a stream that writes from `offset`, or at the end of the file.
fn open_output_stream(
    state: &mut StoreState,
    file: OpenedFile,
    offset: Option<u64>,
) -> FsResult<Resource<DynOutputStream>> {
    let handle = state.open_files.get(&file.rep()).cloned();
    let quota = state.quotas.get(&file.rep()).cloned();
    let mut files = state.filesystem();
    let stream: DynOutputStream =
        if let (Some(quota), Descriptor::File(file)) = (quota, files.table.get(&file)?) {
            Box::new(QuotaWriter::new(quota, file, offset)?)
        } else {
            let stream = match offset {
                Some(offset) => files.write_via_stream(file, offset)?,
                None => files.append_via_stream(file)?,
            };
            files.table.delete(stream)?
        };
    let buffer = state.memory_budget.reserve(STREAM_BUFFER_BYTES)?;
    let table = state.filesystem().table;
    let stream: DynOutputStream = Box::new(MeteredStream::new(stream, buffer, handle));
    Ok(table.push(stream)?)
}
