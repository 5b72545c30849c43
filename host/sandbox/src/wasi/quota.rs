//! Changes of files and folders in a mount with a quota: each is made with the sole right to change the folder, and what
//! it makes of the folder is noted. In other mounts, `wasmtime-wasi` makes them.
//!
//! Whoever waits for that right, or for the folder to be counted, stops when the call ends. A change that has begun is
//! made to its end and noted.

mod writer;

use std::io;

use bytes::Bytes;
use toolbay_model::Limit;
use wasmtime::component::{Linker, Resource, ResourceTable};
use wasmtime_wasi::filesystem::{Descriptor, WasiFilesystemCtx, WasiFilesystemCtxView, WasiFilesystemView as _};
use wasmtime_wasi::p2::FsResult;
use wasmtime_wasi::p2::bindings::filesystem::types::{
    DescriptorFlags, DescriptorType, ErrorCode, HostDescriptor as _, OpenFlags, PathFlags,
};

pub(super) use self::writer::Writer;
use self::writer::{At, resize, write};
use super::opening::{File, Opening, answered};
use super::reached::UsedPath;
use super::version::versioned;
use crate::effects::Barred;
use crate::ledger::{Change, Holds, Quota, length};
use crate::state::State;

/// One more file, folder or link.
const ENTRY: Holds = Holds { bytes: 0, entries: 1 };

pub(super) fn replace(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    let mut types = linker.instance(versioned!("wasi:filesystem/types"))?;
    types.func_wrap_async("[method]descriptor.write", |mut store, (file, bytes, offset): (File, Vec<u8>, u64)| {
        Box::new(async move { Ok((answered(put(store.data_mut(), file, bytes, offset).await)?,)) })
    })?;
    types.func_wrap_async("[method]descriptor.set-size", |mut store, (file, size): (File, u64)| {
        Box::new(async move { Ok((answered(set_size(store.data_mut(), file, size).await)?,)) })
    })?;
    types.func_wrap_async("[method]descriptor.create-directory-at", |mut store, (folder, path): (File, String)| {
        Box::new(async move { Ok((answered(create_folder(store.data_mut(), folder, path).await)?,)) })
    })?;
    types.func_wrap_async(
        "[method]descriptor.symlink-at",
        |mut store, (folder, target, path): (File, String, String)| {
            Box::new(async move { Ok((answered(symlink(store.data_mut(), folder, target, path).await)?,)) })
        },
    )?;
    types.func_wrap_async(
        "[method]descriptor.link-at",
        |mut store, (folder, flags, path, to, name): (File, PathFlags, String, File, String)| {
            Box::new(async move { Ok((answered(link(store.data_mut(), folder, flags, path, to, name).await)?,)) })
        },
    )?;
    types.func_wrap_async(
        "[method]descriptor.rename-at",
        |mut store, (folder, path, to, name): (File, String, File, String)| {
            Box::new(async move { Ok((answered(rename(store.data_mut(), folder, path, to, name).await)?,)) })
        },
    )?;
    types.func_wrap_async("[method]descriptor.unlink-file-at", |mut store, (folder, path): (File, String)| {
        Box::new(async move { Ok((answered(unlink(store.data_mut(), folder, path).await)?,)) })
    })?;
    types.func_wrap_async("[method]descriptor.remove-directory-at", |mut store, (folder, path): (File, String)| {
        Box::new(async move { Ok((answered(remove_folder(store.data_mut(), folder, path).await)?,)) })
    })
}

/// Files of `wasmtime-wasi` apart from a call: a change uses them to its end, even if the call is gone.
#[derive(Default)]
struct Apart {
    context: WasiFilesystemCtx,
    table: ResourceTable,
}

impl Apart {
    /// With the handle of this file or folder.
    fn of(descriptor: Descriptor) -> FsResult<(Self, File)> {
        let mut apart = Self::default();
        let file = apart.table.push(descriptor)?;
        Ok((apart, file))
    }

    fn files(&mut self) -> WasiFilesystemCtxView<'_> {
        WasiFilesystemCtxView { ctx: &mut self.context, table: &mut self.table }
    }

    /// Whether there is something at this path, which may be a link.
    async fn has(&mut self, folder: &File, path: &str) -> bool {
        self.files().stat_at(again(folder), PathFlags::empty(), path.to_owned()).await.is_ok()
    }
}

/// What is at a path that is to be removed or replaced.
struct Found(Option<Descriptor>);

impl Found {
    /// `None` if there is nothing.
    async fn at(apart: &mut Apart, folder: &File, path: &str) -> Option<Self> {
        let flags = PathFlags::empty();
        let found = apart.files().stat_at(again(folder), flags, path.to_owned()).await.ok()?;
        if found.type_ != DescriptorType::RegularFile {
            return Some(Self(None));
        }
        // Open, its last name and its length can be seen afterwards.
        let (open_flags, read) = (OpenFlags::empty(), DescriptorFlags::READ);
        let opening = Opening { path_flags: flags, path: path.to_owned(), open_flags, flags: read };
        let opened = opening.open(&mut apart.files(), folder).await.ok();
        Some(Self(opened.and_then(|opened| apart.table.delete(opened).ok())))
    }

    /// Notes that it was removed.
    fn gone(self, change: &Change) {
        change.entries(-1);
        if let Some(Descriptor::File(file)) = self.0 {
            change.removed(&file.file);
        }
    }
}

fn again(file: &File) -> File {
    Resource::new_borrow(file.rep())
}

/// A call that changes files can no longer ask its caller something: it would change them again. Its temporary folder is
/// another one the next time.
pub(super) fn noted(state: &mut State, file: &File) {
    let limit = state.quotas.get(&file.rep()).and_then(|quota| quota.bounds.bytes).map(|(_, limit)| limit);
    if !matches!(limit, Some(Limit::ScratchSize(_))) {
        state.effects.bar(Barred::File);
    }
}

/// The quota of a file or folder that can be written, and what is behind its handle; `None` where nothing is bounded.
fn bounded(state: &mut State, file: &File) -> FsResult<Option<(Quota, Descriptor)>> {
    let Some(quota) = state.quotas.get(&file.rep()).cloned() else { return Ok(None) };
    let descriptor = state.filesystem().table.get(file)?.clone();
    let read_only = match &descriptor {
        Descriptor::File(file) => file.perms.write_not_permitted(),
        Descriptor::Dir(folder) => folder.perms.write_not_permitted(),
    };
    Ok((!read_only).then_some((quota, descriptor)))
}

/// Makes a change to its end, whether the call is still there or not.
async fn to_its_end<T: Send + 'static>(work: impl Future<Output = FsResult<T>> + Send + 'static) -> FsResult<T> {
    tokio::spawn(work).await.unwrap_or_else(|error| Err(io::Error::other(error).into()))
}

/// The right to make an entry at this path. If there is one already, making it fails anyway, and that needs no room.
async fn room_for(quota: &Quota, apart: &mut Apart, folder: &File, path: &str) -> FsResult<Change> {
    let change = quota.ledger.change().await?;
    if apart.has(folder, path).await {
        return Ok(change);
    }
    Ok(change.room(quota, ENTRY).await?)
}

/// Opens a file that may be created or emptied by that.
pub(super) async fn open(quota: Quota, folder: Descriptor, opening: Opening) -> FsResult<Descriptor> {
    let (mut apart, folder) = Apart::of(folder)?;
    let mut change = quota.ledger.change().await?;
    let creates = opening.open_flags.contains(OpenFlags::CREATE);
    let there = apart.files().stat_at(again(&folder), opening.path_flags, opening.path.clone()).await;
    let missing = matches!(&there, Err(error) if matches!(error.downcast_ref(), Some(ErrorCode::NoEntry)));
    if creates && missing {
        change = change.room(&quota, ENTRY).await?;
    }
    let before = there.map_or(0, |found| found.size);
    let truncates = opening.open_flags.contains(OpenFlags::TRUNCATE);
    to_its_end(async move {
        let opened = opening.open(&mut apart.files(), &folder).await?;
        let opened = apart.table.delete(opened)?;
        if creates && missing {
            change.entries(1);
        } else if truncates
            && let Descriptor::File(file) = &opened
            && let Ok(found) = rustix::fs::fstat(&*file.file)
        {
            change.length(crate::ledger::identity(&found), before, length(&found));
        }
        Ok(opened)
    })
    .await
}

async fn put(state: &mut State, file: File, bytes: Vec<u8>, offset: u64) -> FsResult<u64> {
    noted(state, &file);
    match bounded(state, &file)? {
        Some((quota, Descriptor::File(file))) => {
            let written = write(quota, file.file, Bytes::from(bytes), At::Offset(offset)).await?;
            Ok(written as u64)
        }
        _ => state.filesystem().write(file, bytes, offset).await,
    }
}

async fn set_size(state: &mut State, file: File, size: u64) -> FsResult<()> {
    noted(state, &file);
    match bounded(state, &file)? {
        Some((quota, Descriptor::File(file))) => {
            Ok(resize(quota, file.file, move |_| size, move |file| file.set_len(size)).await?)
        }
        _ => state.filesystem().set_size(file, size).await,
    }
}

async fn create_folder(state: &mut State, folder: File, path: String) -> FsResult<()> {
    let at = UsedPath::changed(&folder, &path);
    at.exists(state)?;
    let made = create_folder_in(state, folder, path).await;
    at.explained(state, made).await
}

async fn create_folder_in(state: &mut State, folder: File, path: String) -> FsResult<()> {
    noted(state, &folder);
    let Some((quota, descriptor)) = bounded(state, &folder)? else {
        return state.filesystem().create_directory_at(folder, path).await;
    };
    let (mut apart, folder) = Apart::of(descriptor)?;
    let change = room_for(&quota, &mut apart, &folder, &path).await?;
    to_its_end(async move {
        apart.files().create_directory_at(folder, path).await?;
        change.entries(1);
        Ok(())
    })
    .await
}

async fn symlink(state: &mut State, folder: File, target: String, path: String) -> FsResult<()> {
    let at = UsedPath::changed(&folder, &path);
    at.exists(state)?;
    let made = symlink_in(state, folder, target, path).await;
    at.explained(state, made).await
}

async fn symlink_in(state: &mut State, folder: File, target: String, path: String) -> FsResult<()> {
    noted(state, &folder);
    let Some((quota, descriptor)) = bounded(state, &folder)? else {
        return state.filesystem().symlink_at(folder, target, path).await;
    };
    let (mut apart, folder) = Apart::of(descriptor)?;
    let change = room_for(&quota, &mut apart, &folder, &path).await?;
    to_its_end(async move {
        apart.files().symlink_at(folder, target, path).await?;
        change.entries(1);
        Ok(())
    })
    .await
}

/// Two folders between which an entry moves or is linked.
enum Between {
    /// Neither has a quota.
    Unbounded,
    /// Both have this one.
    Same(Quota, [Descriptor; 2]),
}

/// # Errors
///
/// [`ErrorCode::CrossDevice`] if only one has a quota, or each its own: as between file systems, a program has to copy.
fn between(state: &mut State, from: &File, to: &File) -> FsResult<Between> {
    match (bounded(state, from)?, bounded(state, to)?) {
        (None, None) => Ok(Between::Unbounded),
        (Some((one, from)), Some((two, to))) if one.is_of(&two) => Ok(Between::Same(two, [from, to])),
        _ => Err(ErrorCode::CrossDevice.into()),
    }
}

async fn link(state: &mut State, folder: File, flags: PathFlags, path: String, to: File, name: String) -> FsResult<()> {
    let both = [UsedPath::changed(&folder, &path), UsedPath::changed(&to, &name)];
    both.iter().try_for_each(|at| at.exists(state))?;
    let mut made = link_in(state, folder, flags, path, to, name).await;
    for at in both {
        made = at.explained(state, made).await;
    }
    made
}

async fn link_in(
    state: &mut State,
    folder: File,
    flags: PathFlags,
    path: String,
    to: File,
    name: String,
) -> FsResult<()> {
    noted(state, &to);
    let Between::Same(quota, [from, into]) = between(state, &folder, &to)? else {
        return state.filesystem().link_at(folder, flags, path, to, name).await;
    };
    let (mut apart, folder) = Apart::of(from)?;
    let to = apart.table.push(into)?;
    let change = room_for(&quota, &mut apart, &to, &name).await?;
    to_its_end(async move {
        apart.files().link_at(folder, flags, path, to, name).await?;
        change.entries(1);
        Ok(())
    })
    .await
}

async fn rename(state: &mut State, folder: File, path: String, to: File, name: String) -> FsResult<()> {
    let both = [UsedPath::changed(&folder, &path), UsedPath::changed(&to, &name)];
    both.iter().try_for_each(|at| at.exists(state))?;
    let mut made = rename_in(state, folder, path, to, name).await;
    for at in both {
        made = at.explained(state, made).await;
    }
    made
}

async fn rename_in(state: &mut State, folder: File, path: String, to: File, name: String) -> FsResult<()> {
    noted(state, &folder);
    let Between::Same(quota, [from, into]) = between(state, &folder, &to)? else {
        return state.filesystem().rename_at(folder, path, to, name).await;
    };
    let (mut apart, folder) = Apart::of(from)?;
    let to = apart.table.push(into)?;
    let change = quota.ledger.change().await?;
    to_its_end(async move {
        let replaced = Found::at(&mut apart, &to, &name).await;
        // Two names of one file: then both stay.
        let same = {
            let flags = PathFlags::empty();
            let old = apart.files().metadata_hash_at(again(&folder), flags, path.clone()).await;
            let new = apart.files().metadata_hash_at(again(&to), flags, name.clone()).await;
            matches!((old, new), (Ok(old), Ok(new)) if (old.lower, old.upper) == (new.lower, new.upper))
        };
        apart.files().rename_at(folder, path, to, name).await?;
        if let (Some(replaced), false) = (replaced, same) {
            replaced.gone(&change);
        }
        Ok(())
    })
    .await
}

async fn unlink(state: &mut State, folder: File, path: String) -> FsResult<()> {
    let at = UsedPath::changed(&folder, &path);
    at.exists(state)?;
    let made = unlink_in(state, folder, path).await;
    at.explained(state, made).await
}

async fn unlink_in(state: &mut State, folder: File, path: String) -> FsResult<()> {
    noted(state, &folder);
    let Some((quota, descriptor)) = bounded(state, &folder)? else {
        return state.filesystem().unlink_file_at(folder, path).await;
    };
    let (mut apart, folder) = Apart::of(descriptor)?;
    let change = quota.ledger.change().await?;
    to_its_end(async move {
        let found = Found::at(&mut apart, &folder, &path).await;
        apart.files().unlink_file_at(folder, path).await?;
        if let Some(found) = found {
            found.gone(&change);
        }
        Ok(())
    })
    .await
}

async fn remove_folder(state: &mut State, folder: File, path: String) -> FsResult<()> {
    let at = UsedPath::changed(&folder, &path);
    at.exists(state)?;
    let made = remove_folder_in(state, folder, path).await;
    at.explained(state, made).await
}

async fn remove_folder_in(state: &mut State, folder: File, path: String) -> FsResult<()> {
    noted(state, &folder);
    let Some((quota, descriptor)) = bounded(state, &folder)? else {
        return state.filesystem().remove_directory_at(folder, path).await;
    };
    let (mut apart, folder) = Apart::of(descriptor)?;
    let change = quota.ledger.change().await?;
    to_its_end(async move {
        apart.files().remove_directory_at(folder, path).await?;
        change.entries(-1);
        Ok(())
    })
    .await
}
