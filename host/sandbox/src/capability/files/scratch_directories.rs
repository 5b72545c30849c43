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
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

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
    /// Manages directories in `root` for at most `next_call` concurrent calls. Creates nothing yet.
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
        let place = Arc::clone(&self.permits)
            .acquire_owned()
            .await
            .map_err(|error| error.to_string())?;
        let (scratches, runtime) = (Arc::clone(self), Handle::current());
        let made = tokio::task::spawn_blocking(move || scratches.create_blocking(place, runtime));
        let made = made.await.unwrap_or_else(|error| Err(error.to_string()));
        made.map_err(|why| {
            format!("cannot make a temporary folder for the call: {why} (server.scratch)")
        })
    }

    fn create_blocking(
        &self,
        place: OwnedSemaphorePermit,
        runtime: Handle,
    ) -> Result<ScratchDirectory, String> {
        let own = self.server_directory()?;
        let name = own.next_call.fetch_add(1, Ordering::Relaxed).to_string();
        let cannot = |error: Errno| format!("{}: {}", self.root.display(), io::Error::from(error));
        mkdirat(&own.directory, &name, Mode::RWXU).map_err(cannot)?;
        let left = LeftoverFolder {
            server_directory: own,
            name,
            _permit: place,
        };
        let opened = openat(
            &left.server_directory.directory,
            &left.name,
            DIRECTORY_FLAGS,
            Mode::empty(),
        );
        let folder = File::from(opened.inspect_err(|_| left.remove()).map_err(cannot)?);
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
            removal: Some(left),
            runtime,
        })
    }

    /// Returns the directory of this server. Creates it again if another process has removed it.
    fn server_directory(&self) -> Result<Arc<ServerFolder>, String> {
        let mut own = self
            .server_directory
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = own.as_ref()
            && fstat(&own.directory).is_ok_and(|found| found.st_nlink > 0)
        {
            return Ok(Arc::clone(own));
        }
        let made = ServerFolder::create(&self.root)?;
        Ok(Arc::clone(own.insert(Arc::new(made))))
    }
}

impl ServerFolder {
    fn create(root: &Path) -> Result<Self, String> {
        let cannot = |error: Errno| format!("{}: {}", root.display(), io::Error::from(error));
        let root = PrivateFolder::open(root, DIRECTORY_PURPOSE)?.handle;
        for n in 0..MAX_NAME_ATTEMPTS {
            let name = format!("{DIRECTORY_PREFIX}{}-{n}", std::process::id());
            match mkdirat(&root, &name, Mode::RWXU) {
                Err(Errno::EXIST) => continue,
                made => made.map_err(cannot)?,
            }
            // Before the lock is taken, another server can mistake the directory for a leftover
            // one.
            let Ok(folder) = openat(&root, &name, DIRECTORY_FLAGS, Mode::empty()) else {
                continue;
            };
            if flock(&folder, FlockOperation::NonBlockingLockExclusive).is_err()
                || fstat(&folder).is_ok_and(|found| found.st_nlink == 0)
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
        Err(cannot(Errno::EXIST))
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
        if let Some(removing) = self.start_removal() {
            let _ = removing.await;
        }
    }

    fn start_removal(&mut self) -> Option<tokio::task::JoinHandle<()>> {
        let left = self.removal.take()?;
        let ledger = Arc::clone(&self.ledger);
        Some(self.runtime.spawn(async move {
            // Wait until the changes that the call started are finished.
            ledger.wait_until_idle().await;
            let _ = tokio::task::spawn_blocking(move || left.remove()).await;
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
    let cannot = |error: Errno| format!("{}: {}", root.display(), io::Error::from(error));
    let private = PrivateFolder::open(root, DIRECTORY_PURPOSE)?;
    // The handle itself cannot be read.
    let list = openat(&private.handle, ".", DIRECTORY_FLAGS, Mode::empty()).map_err(cannot)?;
    for entry in Dir::read_from(list).map_err(cannot)? {
        let entry = entry.map_err(cannot)?;
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
        remove(&folder.into()).map_err(cannot)?;
        match unlinkat(&private.handle, name, AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(cannot(error)),
        }
    }
    Ok(())
}

/// Removes the contents of a directory. Needs few file descriptors at any depth, because it moves
/// nested directories up to the top. Follows no links. Blocks.
pub(crate) fn remove(top: &File) -> Result<(), Errno> {
    let (mut moved, mut vain) = (0_u64, 0);
    loop {
        let (mut empty, mut progress) = (true, false);
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
                progress |= move_up(&folder, name, top, &mut moved)?;
            }
            progress |= unlinkat(top, name, AtFlags::REMOVEDIR).is_ok();
        }
        if empty {
            return Ok(());
        }
        vain = if progress { 0 } else { vain + 1 };
        if vain == MAX_FUTILE_ROUNDS {
            return Err(Errno::NOTEMPTY);
        }
    }
}

/// Removes a file, a link or an empty directory. Returns whether it no longer exists.
fn try_unlink(folder: BorrowedFd<'_>, name: &CStr) -> bool {
    let gone = |removed: Result<(), Errno>| matches!(removed, Ok(()) | Err(Errno::NOENT));
    gone(unlinkat(folder, name, AtFlags::empty()))
        || gone(unlinkat(folder, name, AtFlags::REMOVEDIR))
}

/// Moves a directory to `top` under an unused name.
fn move_up(folder: &OwnedFd, name: &CStr, top: &File, moved: &mut u64) -> Result<bool, Errno> {
    loop {
        *moved += 1;
        match renameat_with(
            folder,
            name,
            top,
            format!(".{moved}"),
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
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::context::usage_ledger::{DirectoryUsage, ScanResult, scan_directory};

    fn names(folder: &Path) -> Vec<PathBuf> {
        fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect()
    }

    #[tokio::test]
    async fn a_folder_is_private_and_gone_after_its_call() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("scratch");
        let scratches = Arc::new(TemporaryFolders::new(root.clone(), 2));
        assert!(!root.exists(), "nothing is made before it is needed");
        let (one, two) = (
            scratches.create().await.unwrap(),
            scratches.create().await.unwrap(),
        );
        let own = names(&root).pop().unwrap();
        let folders = names(&own);
        assert_eq!(folders.len(), 2);
        for folder in folders.iter().chain([&root, &own]) {
            assert_eq!(
                fs::metadata(folder).unwrap().permissions().mode() & 0o777,
                0o700,
                "{}",
                folder.display()
            );
        }
        fs::create_dir_all(folders[0].join("a/b")).unwrap();
        fs::write(folders[0].join("a/b/file"), "x").unwrap();
        one.remove().await;
        two.remove().await;
        assert_eq!(names(&own), Vec::<PathBuf>::new());
        drop(scratches);
        assert_eq!(
            names(&root),
            Vec::<PathBuf>::new(),
            "a server that ends leaves nothing"
        );
    }

    #[tokio::test]
    async fn there_are_never_more_folders_than_calls() {
        let dir = tempfile::tempdir().unwrap();
        let scratches = Arc::new(TemporaryFolders::new(dir.path().join("scratch"), 1));
        let first = scratches.create().await.unwrap();
        let mut next = std::pin::pin!(scratches.create());
        assert!(futures_pending(next.as_mut()).await);
        // Dropped, as when the call is cancelled.
        drop(first);
        next.await.unwrap();
    }

    async fn futures_pending<F: Future>(mut future: std::pin::Pin<&mut F>) -> bool {
        std::future::poll_fn(|context| {
            std::task::Poll::Ready(future.as_mut().poll(context).is_pending())
        })
        .await
    }

    #[test]
    fn what_a_killed_server_left_is_removed_and_what_a_running_one_has_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("scratch");
        let running = ServerFolder::create(&root).unwrap();
        mkdirat(&running.directory, "0", Mode::RWXU).unwrap();
        let left = root.join("server-1-0/0/deep");
        fs::create_dir_all(&left).unwrap();
        fs::write(left.join("file"), "x").unwrap();
        fs::create_dir(dir.path().join("precious")).unwrap();
        fs::write(dir.path().join("precious/file"), "x").unwrap();
        symlink(dir.path().join("precious"), root.join("server-1-0/link")).unwrap();
        symlink(dir.path().join("precious"), root.join("server-link")).unwrap();
        fs::create_dir(root.join("of-the-operator")).unwrap();
        let scratches = TemporaryFolders::new(root.clone(), 1);
        scratches.remove_leftovers();
        assert!(!root.join("server-1-0").exists());
        assert!(root.join(&running.name).join("0").exists());
        assert!(root.join("of-the-operator").exists());
        assert!(dir.path().join("precious/file").exists());
        drop(running);
        assert_eq!(
            names(&root).len(),
            2,
            "the link, and what is not a server's"
        );
    }

    #[test]
    fn a_folder_that_is_deeper_than_there_are_descriptors_and_longer_than_a_path_is_counted_and_removed()
     {
        let root = tempfile::tempdir().unwrap();
        let top = File::open(root.path()).unwrap();
        let mut here = openat(&top, ".", DIRECTORY_FLAGS, Mode::empty()).unwrap();
        let (name, depth) = ("n".repeat(200), 3000);
        for _ in 0..depth {
            mkdirat(&here, &name, Mode::RWXU).unwrap();
            here = openat(&here, &name, DIRECTORY_FLAGS, Mode::empty()).unwrap();
        }
        let counted =
            || scan_directory(&top, DirectoryUsage::default(), &AtomicBool::new(false)).unwrap();
        assert_eq!(
            counted(),
            ScanResult::All(DirectoryUsage {
                bytes: 0,
                entries: depth
            })
        );
        remove(&top).unwrap();
        assert_eq!(counted(), ScanResult::All(DirectoryUsage::default()));
    }

    #[test]
    fn a_folder_of_folders_is_removed_whatever_their_names() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["1/.1/.1/.2", ".1/.1", ".2/.3/.1", "a/b/c"] {
            fs::create_dir_all(dir.path().join(name)).unwrap();
            fs::write(dir.path().join(name).join("file"), "x").unwrap();
        }
        remove(&File::open(dir.path()).unwrap()).unwrap();
        assert_eq!(names(dir.path()), Vec::<PathBuf>::new());
    }

    #[tokio::test]
    async fn a_folder_of_somebody_else_is_not_used() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("scratch");
        fs::create_dir(&root).unwrap();
        fs::set_permissions(&root, fs::Permissions::from_mode(0o777)).unwrap();
        let why = Arc::new(TemporaryFolders::new(root, 1))
            .create()
            .await
            .err()
            .unwrap();
        assert!(
            why.contains("is writable by other users") && why.ends_with("(server.scratch)"),
            "{why}"
        );
    }
}
