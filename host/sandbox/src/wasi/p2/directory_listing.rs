//! Lists directories in batches: `wasmtime-wasi` would hold all entries of a directory of any size
//! in memory.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use rustix::fs::{Dir, FileType};
use toolbay_model::ByteReservation;
use wasmtime::component::{Linker, Resource, ResourceType};
use wasmtime_wasi::filesystem::{Descriptor, WasiFilesystemView as _};
use wasmtime_wasi::p2::FsResult;
use wasmtime_wasi::p2::bindings::filesystem::types::{DescriptorType, DirectoryEntry, ErrorCode};

use super::files::take_descriptor;
use super::open_at::to_guest_result;
use super::path_denial::PathAccess;
use super::version::versioned;
use crate::capability::files::descriptors::OpenDescriptor;
use crate::store::state::StoreState;

/// Number of entries in a batch.
const BATCH_ENTRIES: usize = 64;

/// Memory that a listing uses, in bytes: a batch of entries with names of at most 255 bytes each,
/// and the buffer of the C library's `readdir`.
const LISTING_MEMORY_BYTES: usize = BATCH_ENTRIES * 320 + (32 << 10);

/// A directory that is being listed.
struct DirectoryListing {
    /// `None` at the end and while a batch is being read.
    directory: Option<Dir>,
    buffered: VecDeque<DirectoryEntry>,
    _memory: ByteReservation,
    _descriptor: OpenDescriptor,
}

pub(super) fn replace(linker: &mut Linker<StoreState>) -> wasmtime::Result<()> {
    let mut types = linker.instance(versioned!("wasi:filesystem/types"))?;
    types.resource(
        "directory-entry-stream",
        ResourceType::host::<DirectoryListing>(),
        |mut store, rep| {
            store
                .data_mut()
                .filesystem()
                .table
                .delete(Resource::<DirectoryListing>::new_own(rep))?;
            Ok(())
        },
    )?;
    types.func_wrap_async(
        "[method]descriptor.read-directory",
        |mut store, (folder,): (Resource<Descriptor>,)| {
            Box::new(async move {
                Ok((to_guest_result(
                    open_listing(store.data_mut(), folder).await,
                )?,))
            })
        },
    )?;
    types.func_wrap_async(
        "[method]directory-entry-stream.read-directory-entry",
        |mut store, (listing,): (Resource<DirectoryListing>,)| {
            Box::new(async move {
                Ok((to_guest_result(
                    next_entry(store.data_mut(), listing).await,
                )?,))
            })
        },
    )
}

async fn open_listing(
    state: &mut StoreState,
    folder: Resource<Descriptor>,
) -> FsResult<Resource<DirectoryListing>> {
    PathAccess::for_listing(&folder).check_mounted(state)?;
    let table = state.filesystem().table;
    let folder = match table.get(&folder)? {
        Descriptor::Dir(folder) => Arc::clone(&folder.dir),
        Descriptor::File(_) => return Err(ErrorCode::NotDirectory.into()),
    };
    let memory = state.memory_budget.reserve(LISTING_MEMORY_BYTES)?;
    let descriptor = take_descriptor(state)?;
    // Reopened, so that two listings of one directory do not share a position.
    let folder = run_blocking(move || Dir::read_from(&*folder))
        .await?
        .map_err(io::Error::from)?;
    let listing = DirectoryListing {
        directory: Some(folder),
        buffered: VecDeque::new(),
        _memory: memory,
        _descriptor: descriptor,
    };
    Ok(state.filesystem().table.push(listing)?)
}

async fn next_entry(
    state: &mut StoreState,
    listing: Resource<DirectoryListing>,
) -> FsResult<Option<DirectoryEntry>> {
    let table = state.filesystem().table;
    let listing = table.get_mut(&listing)?;
    if listing.buffered.is_empty()
        && let Some(mut folder) = listing.directory.take()
    {
        let (batch, directory) = run_blocking(move || {
            let batch = read_batch(&mut folder);
            (batch, folder)
        })
        .await?;
        listing.buffered = batch?;
        if !listing.buffered.is_empty() {
            listing.directory = Some(directory);
        }
    }
    Ok(listing.buffered.pop_front())
}

/// Reads the next batch of entries. The batch is empty at the end of the directory.
fn read_batch(folder: &mut Dir) -> Result<VecDeque<DirectoryEntry>, ErrorCode> {
    let mut entries = VecDeque::with_capacity(BATCH_ENTRIES);
    while entries.len() < BATCH_ENTRIES
        && let Some(entry) = folder.read()
    {
        let entry = entry.map_err(io::Error::from)?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        let kind = match entry.file_type() {
            // Some file systems do not report the type here.
            FileType::Unknown => {
                let flags = rustix::fs::AtFlags::SYMLINK_NOFOLLOW;
                let metadata =
                    rustix::fs::statat(folder.fd().map_err(io::Error::from)?, name, flags);
                metadata.map_or(FileType::Unknown, |stat| {
                    FileType::from_raw_mode(stat.st_mode)
                })
            }
            file_type => file_type,
        };
        let name = name
            .to_str()
            .map_err(|_| ErrorCode::IllegalByteSequence)?
            .to_owned();
        entries.push_back(DirectoryEntry {
            type_: descriptor_type(kind),
            name,
        });
    }
    Ok(entries)
}

fn descriptor_type(kind: FileType) -> DescriptorType {
    match kind {
        FileType::RegularFile => DescriptorType::RegularFile,
        FileType::Directory => DescriptorType::Directory,
        FileType::Symlink => DescriptorType::SymbolicLink,
        FileType::Fifo => DescriptorType::Fifo,
        FileType::Socket => DescriptorType::Socket,
        FileType::CharacterDevice => DescriptorType::CharacterDevice,
        FileType::BlockDevice => DescriptorType::BlockDevice,
        FileType::Unknown => DescriptorType::Unknown,
    }
}

/// Runs file I/O on a thread that may block.
async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ErrorCode> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|error| ErrorCode::from(io::Error::other(error)))
}
