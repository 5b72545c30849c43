//! Temporary directories of calls. Each is empty when its call starts and is removed when the call
//! ends.
//!
//! Each server creates these in its own directory, which it locks. The lock ends with the process,
//! however the process ends. A later server can therefore detect and remove leftover directories.

use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use rustix::fs::{
    AtFlags, Dir, FlockOperation, Mode, OFlags, RenameFlags, flock, fstat, mkdirat, openat,
    renameat_with, unlinkat,
};
use rustix::io::Errno;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use toolbay_model::Limit;
use toolbay_policy::ScratchPermission;
use wasmtime_wasi::OpenMode;
use wasmtime_wasi::filesystem::{Dir as WasiDir, FsPerms};

use crate::context::usage_ledger::{UsageBounds, UsageLedger};
use toolbay_private::PrivateFolder;

/// Prefix of the name of a server's directory.
const DIRECTORY_PREFIX: &str = "server-";

/// Purpose of the directory that all servers share, for the log.
const DIRECTORY_PURPOSE: &str = "temporary files of calls";

/// Maximum number of attempts to find an unused directory name.
const MAX_NAME_ATTEMPTS: u32 = 100;

/// Maximum number of calls with a temporary directory at the same time, if nothing else bounds
/// them.
const MAX_DIRECTORIES: usize = 4096;

/// Number of consecutive rounds without progress after which removing a directory fails.
const MAX_FUTILE_ROUNDS: u32 = 3;

/// Flags for opening a directory.
const DIRECTORY_FLAGS: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// The temporary directories of a server's calls.
#[derive(Debug)]
pub(crate) struct TemporaryFolders {
    root: PathBuf,
    /// The directory of this server. Created for the first call that needs it.
    server_directory: Mutex<Option<Arc<ServerFolder>>>,
    /// Permits for directories. A directory holds its permit until it has been removed.
    permits: Arc<Semaphore>,
}

/// A server's directory. It is locked as long as it is open.
#[derive(Debug)]
struct ServerFolder {
    root: OwnedFd,
    name: String,
    directory: File,
    next_call: AtomicU64,
}

/// The temporary directory of a call. Dropping it removes the directory on another thread.
pub(crate) struct ScratchDirectory {
    pub(crate) dir: WasiDir,
    pub(crate) ledger: Arc<UsageLedger>,
    removal: Option<LeftoverFolder>,
    runtime: Handle,
}

/// A temporary directory that must still be removed.
#[derive(Debug)]
struct LeftoverFolder {
    server_directory: Arc<ServerFolder>,
    name: String,
    _permit: OwnedSemaphorePermit,
}

impl TemporaryFolders {
    /// Manages directories in `root` for at most `calls` concurrent calls. Creates nothing yet.
    pub(crate) fn new(root: PathBuf, calls: usize) -> Self {
        Self {
            root,
            server_directory: Mutex::default(),
            permits: Arc::new(Semaphore::new(calls.clamp(1, MAX_DIRECTORIES))),
        }
    }

    /// Removes the directories that terminated servers left behind. Blocks.
    pub(crate) fn remove_leftovers(&self) {
        if self.root.exists()
            && let Err(why) = sweep(&self.root)
        {
            tracing::warn!("cannot remove old temporary folders of calls: {why}");
        }
    }

    /// Creates a directory for a call. Waits while the maximum number of directories exists.
    ///
    /// # Errors
    ///
    /// Fails if the directory cannot be created. The message addresses the operator.
    pub(crate) async fn create(self: &Arc<Self>) -> Result<ScratchDirectory, String> {
        let permit = Arc::clone(&self.permits)
            .acquire_owned()
            .await
            .map_err(|error| error.to_string())?;
        let folders = Arc::clone(self);
        let runtime = Handle::current();
        let task = tokio::task::spawn_blocking(move || folders.create_blocking(permit, runtime));
        let created = task.await.unwrap_or_else(|error| Err(error.to_string()));
        created.map_err(|why| {
            format!("cannot make a temporary folder for the call: {why} (server.scratch)")
        })
    }

    fn create_blocking(
        &self,
        permit: OwnedSemaphorePermit,
        runtime: Handle,
    ) -> Result<ScratchDirectory, String> {
        let server_directory = self.server_directory()?;
        let name = server_directory
            .next_call
            .fetch_add(1, Ordering::Relaxed)
            .to_string();
        let describe =
            |error: Errno| format!("{}: {}", self.root.display(), io::Error::from(error));
        mkdirat(&server_directory.directory, &name, Mode::RWXU).map_err(describe)?;
        let leftover = LeftoverFolder {
            server_directory,
            name,
            _permit: permit,
        };
        let opened = openat(
            &leftover.server_directory.directory,
            &leftover.name,
            DIRECTORY_FLAGS,
            Mode::empty(),
        );
        let folder = File::from(
            opened
                .inspect_err(|_| leftover.remove())
                .map_err(describe)?,
        );
        let dir = WasiDir::new(
            folder,
            FsPerms::ReadWrite,
            OpenMode::READ | OpenMode::WRITE,
            false,
        );
        let ledger = UsageLedger::empty(Arc::clone(&dir.dir));
        Ok(ScratchDirectory {
            dir,
            ledger,
            removal: Some(leftover),
            runtime,
        })
    }

    /// Returns the directory of this server. Creates it again if another process has removed it.
    fn server_directory(&self) -> Result<Arc<ServerFolder>, String> {
        let mut current = self.server_directory.lock();
        if let Some(existing) = current.as_ref()
            && fstat(&existing.directory).is_ok_and(|stat| stat.st_nlink > 0)
        {
            return Ok(Arc::clone(existing));
        }
        let created = ServerFolder::create(&self.root)?;
        Ok(Arc::clone(current.insert(Arc::new(created))))
    }
}

impl ServerFolder {
    fn create(root: &Path) -> Result<Self, String> {
        let describe = |error: Errno| format!("{}: {}", root.display(), io::Error::from(error));
        let root = PrivateFolder::open(root, DIRECTORY_PURPOSE)?.handle;
        for n in 0..MAX_NAME_ATTEMPTS {
            let name = format!("{DIRECTORY_PREFIX}{}-{n}", std::process::id());
            match mkdirat(&root, &name, Mode::RWXU) {
                Err(Errno::EXIST) => continue,
                created => created.map_err(describe)?,
            }
            // Before the lock is taken, another server can mistake the directory for a leftover
            // one.
            let Ok(folder) = openat(&root, &name, DIRECTORY_FLAGS, Mode::empty()) else {
                continue;
            };
            if flock(&folder, FlockOperation::NonBlockingLockExclusive).is_err()
                || fstat(&folder).is_ok_and(|stat| stat.st_nlink == 0)
            {
                continue;
            }
            return Ok(Self {
                root,
                name,
                directory: folder.into(),
                next_call: AtomicU64::new(0),
            });
        }
        Err(describe(Errno::EXIST))
    }
}

impl Drop for ServerFolder {
    fn drop(&mut self) {
        if remove(&self.directory).is_ok() {
            let _ = unlinkat(&self.root, &self.name, AtFlags::REMOVEDIR);
        }
    }
}

impl ScratchDirectory {
    /// Returns the bounds that the grant sets for this directory.
    pub(crate) fn bounds(scratch: &ScratchPermission) -> UsageBounds {
        UsageBounds {
            bytes: Some((scratch.size.as_u64(), Limit::ScratchSize(scratch.size))),
            entries: Some((
                scratch.entries as u64,
                Limit::ScratchEntries(scratch.entries),
            )),
        }
    }

    /// Removes the directory. Removal continues if the future is dropped.
    pub(crate) async fn remove(mut self) {
        if let Some(removal_task) = self.start_removal() {
            let _ = removal_task.await;
        }
    }

    fn start_removal(&mut self) -> Option<tokio::task::JoinHandle<()>> {
        let leftover = self.removal.take()?;
        let ledger = Arc::clone(&self.ledger);
        Some(self.runtime.spawn(async move {
            // Wait until the changes that the call started are finished.
            ledger.wait_until_idle().await;
            let _ = tokio::task::spawn_blocking(move || leftover.remove()).await;
        }))
    }
}

impl Drop for ScratchDirectory {
    fn drop(&mut self) {
        drop(self.start_removal());
    }
}

impl LeftoverFolder {
    /// Removes the directory. If that fails, it is removed with the server's directory.
    fn remove(&self) {
        let removed = openat(
            &self.server_directory.directory,
            &self.name,
            DIRECTORY_FLAGS,
            Mode::empty(),
        )
        .and_then(|folder| remove(&folder.into()))
        .and_then(|()| {
            unlinkat(
                &self.server_directory.directory,
                &self.name,
                AtFlags::REMOVEDIR,
            )
        });
        if let Err(error) = removed {
            tracing::warn!(
                "cannot remove the temporary folder of a call: {}",
                io::Error::from(error)
            );
        }
    }
}

/// Removes the directories in `root` that no server has locked.
fn sweep(root: &Path) -> Result<(), String> {
    let describe = |error: Errno| format!("{}: {}", root.display(), io::Error::from(error));
    let private = PrivateFolder::open(root, DIRECTORY_PURPOSE)?;
    // The handle of a private directory is opened with `O_PATH`, which does not allow listing.
    let list = openat(&private.handle, ".", DIRECTORY_FLAGS, Mode::empty()).map_err(describe)?;
    for entry in Dir::read_from(list).map_err(describe)? {
        let entry = entry.map_err(describe)?;
        let name = entry.file_name();
        if !name.to_bytes().starts_with(DIRECTORY_PREFIX.as_bytes()) {
            continue;
        }
        let Ok(folder) = openat(&private.handle, name, DIRECTORY_FLAGS, Mode::empty()) else {
            continue;
        };
        if flock(&folder, FlockOperation::NonBlockingLockExclusive).is_err() {
            continue;
        }
        remove(&folder.into()).map_err(describe)?;
        match unlinkat(&private.handle, name, AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(describe(error)),
        }
    }
    Ok(())
}

/// Removes the contents of a directory. Needs few file descriptors at any depth, because it moves
/// nested directories up to the top. Follows no links. Blocks.
pub(crate) fn remove(top: &File) -> Result<(), Errno> {
    let mut moved_count = 0_u64;
    let mut futile_rounds = 0;
    loop {
        let mut empty = true;
        let mut progress = false;
        for entry in Dir::read_from(top)? {
            let entry = entry?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            empty = false;
            if try_unlink(top.as_fd(), name) {
                progress = true;
                continue;
            }
            let Ok(folder) = openat(top, name, DIRECTORY_FLAGS, Mode::empty()) else {
                continue;
            };
            for inner in Dir::read_from(&folder)? {
                let inner = inner?;
                let name = inner.file_name();
                if matches!(name.to_bytes(), b"." | b"..") || try_unlink(folder.as_fd(), name) {
                    continue;
                }
                progress |= move_up(&folder, name, top, &mut moved_count)?;
            }
            progress |= unlinkat(top, name, AtFlags::REMOVEDIR).is_ok();
        }
        if empty {
            return Ok(());
        }
        futile_rounds = if progress { 0 } else { futile_rounds + 1 };
        if futile_rounds == MAX_FUTILE_ROUNDS {
            return Err(Errno::NOTEMPTY);
        }
    }
}

/// Removes a file, a link or an empty directory. Returns whether it no longer exists.
fn try_unlink(folder: BorrowedFd<'_>, name: &CStr) -> bool {
    let is_removed = |removed: Result<(), Errno>| matches!(removed, Ok(()) | Err(Errno::NOENT));
    is_removed(unlinkat(folder, name, AtFlags::empty()))
        || is_removed(unlinkat(folder, name, AtFlags::REMOVEDIR))
}

/// Moves a directory to `top` under an unused name.
fn move_up(
    folder: &OwnedFd,
    name: &CStr,
    top: &File,
    moved_count: &mut u64,
) -> Result<bool, Errno> {
    loop {
        *moved_count += 1;
        match renameat_with(
            folder,
            name,
            top,
            format!(".{moved_count}"),
            RenameFlags::NOREPLACE,
        ) {
            Ok(()) => return Ok(true),
            Err(Errno::EXIST) => {}
            Err(Errno::NOENT) => return Ok(false),
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests;
