//! Handles of mounted directories, which are opened once and without following links.
//!
//! The path of a mount is trusted only when the plugin is loaded: anyone who can write to a parent
//! directory can later replace it by a link. Therefore the path is resolved once, component by
//! component, each relative to the handle of its parent, and no component may be a link. Only the
//! plugin folder, which is the base of relative paths, may be reached through links, because the
//! operator passes it to the server. Calls use the handle. The per-caller directory in a mounted
//! directory is opened from the handle in the same way, for each call, and is created if it does
//! not exist.

use std::ffi::OsStr;
use std::fmt;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Component, Path};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, fstat, mkdirat, openat, statat};
use rustix::io::Errno;
use toolbay_model::{CallerIdentity, Limit};
use toolbay_policy::{MountAccess, MountPermission, MountScope};
use wasmtime_wasi::OpenMode;
use wasmtime_wasi::filesystem::{Dir, FsPerms};

use crate::context::usage_ledger::{CallQuota, LedgerRegistry, UsageBounds, UsageLedger};

/// Flags with which each directory on the path is opened.
const STEP_FLAGS: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// The directories of a plugin's mounts. Clones share the handles.
#[derive(Clone, Debug, Default)]
pub struct MountRoots(Arc<[MountRoot]>);

struct MountRoot {
    mount: Arc<MountPermission>,
    /// The open directory, or `None` while the directory does not exist.
    open_directory: Mutex<Option<Dir>>,
    /// The ledger of the directory, if it has a quota. It is retained here so that the directory is
    /// scanned only once.
    ledger: Mutex<Option<Arc<UsageLedger>>>,
}

/// A mounted directory of one call.
#[derive(Clone)]
pub(crate) struct MountedDirectory {
    /// The open directory.
    pub(crate) dir: Dir,
    /// The path of the directory in the guest.
    pub(crate) guest: String,
    /// The quota of the directory, or `None` if it is not bounded.
    pub(crate) quota: Option<CallQuota>,
    /// The mount in the grant, or `None` for a temporary directory.
    pub(crate) mount: Option<Arc<MountPermission>>,
}

impl MountRoots {
    /// Creates the roots of these mounts without opening the directories.
    pub fn new(mounts: &[MountPermission]) -> Self {
        Self(
            mounts
                .iter()
                .map(|mount| MountRoot {
                    mount: Arc::new(mount.clone()),
                    open_directory: Mutex::default(),
                    ledger: Mutex::default(),
                })
                .collect(),
        )
    }

    /// Opens the directories, and returns a warning for each one that cannot be used. Such a
    /// directory is opened by the first call after it was created or repaired. Blocks.
    pub fn open(&self) -> Vec<String> {
        self.0
            .iter()
            .filter_map(|root| {
                root.directory()
                    .err()
                    .map(|why| root.unusable_message(&why))
            })
            .collect()
    }

    /// Returns the directories of a call of `caller`. `reached_limit` receives the first bound that
    /// the call exceeds.
    ///
    /// # Errors
    ///
    /// Returns a message for the operator if a directory cannot be used.
    pub(crate) async fn open_for_call(
        &self,
        caller: Option<&CallerIdentity>,
        ledgers: &Arc<LedgerRegistry>,
        reached_limit: &Arc<OnceLock<Limit>>,
    ) -> Result<Vec<MountedDirectory>, String> {
        let roots = self.clone();
        let caller = caller.cloned();
        let ledgers = Arc::clone(ledgers);
        let reached_limit = Arc::clone(reached_limit);
        let mount_all = move || {
            roots
                .0
                .iter()
                .map(|root| root.mount_for_call(caller.as_ref(), &ledgers, &reached_limit))
                .collect()
        };
        // Without per-caller directories, all directories are usually open already, and no blocking
        // thread is needed.
        if self.0.iter().all(|root| root.mount.scope.is_none()) {
            return mount_all();
        }
        tokio::task::spawn_blocking(mount_all)
            .await
            .unwrap_or_else(|error| Err(error.to_string()))
    }
}

/// Roots are equal if their calls reach the same directories.
impl PartialEq for MountRoots {
    fn eq(&self, other: &Self) -> bool {
        let is_same = |(one, two): (&MountRoot, &MountRoot)| {
            one.mount == two.mount && one.identity() == two.identity()
        };
        self.0.len() == other.0.len() && self.0.iter().zip(other.0.iter()).all(is_same)
    }
}

impl MountRoot {
    /// Returns the directory for a call of `caller`. Blocks if the mount has per-caller
    /// directories.
    fn mount_for_call(
        &self,
        caller: Option<&CallerIdentity>,
        ledgers: &LedgerRegistry,
        reached_limit: &Arc<OnceLock<Limit>>,
    ) -> Result<MountedDirectory, String> {
        let dir = self.directory().and_then(|dir| match self.mount.scope {
            None => Ok(dir),
            Some(MountScope::Caller) => {
                let caller_directory = File::from(open_caller_directory(&dir.dir, caller)?);
                Ok(Dir::new(caller_directory, dir.perms, dir.open_mode, false))
            }
        });
        let dir = dir.map_err(|why| self.unusable_message(&why))?;
        let quota = self
            .quota(&dir, ledgers, reached_limit)
            .map_err(|error| self.unusable_message(&describe_error(error)))?;
        Ok(MountedDirectory {
            dir,
            guest: self.mount.guest.clone(),
            quota,
            mount: Some(Arc::clone(&self.mount)),
        })
    }

    /// Returns the quota of the directory, or `None` if neither this mount nor another one of the
    /// same directory has a quota.
    fn quota(
        &self,
        dir: &Dir,
        ledgers: &LedgerRegistry,
        reached_limit: &Arc<OnceLock<Limit>>,
    ) -> Result<Option<CallQuota>, Errno> {
        let bytes = self
            .mount
            .quota
            .map(|max_bytes| (max_bytes.as_u64(), Limit::MountQuota(max_bytes)));
        let entries = self
            .mount
            .max_entries()
            .map(|max_entries| (max_entries as u64, Limit::MountEntries(max_entries)));
        let bounds = UsageBounds { bytes, entries };
        let ledger = if bytes.is_none() && entries.is_none() {
            ledgers.find(&dir.dir)
        } else {
            let ledger = ledgers.register(&dir.dir, &bounds)?;
            match self.mount.scope {
                None => {
                    *self.ledger.lock() = Some(Arc::clone(&ledger));
                }
                Some(MountScope::Caller) => ledgers.cache(&ledger),
            }
            Some(ledger)
        };
        Ok(ledger.map(|ledger| CallQuota {
            ledger,
            bounds,
            reached_limit: Arc::clone(reached_limit),
        }))
    }

    /// Returns the open directory, or opens it. The error is the end of a sentence about the
    /// directory.
    fn directory(&self) -> Result<Dir, String> {
        let mut cached = self.open_directory.lock();
        if let Some(folder) = cached.as_ref()
            // A deleted directory may have been created again.
            && fstat(&*folder.dir).is_ok_and(|stat| stat.st_nlink > 0)
        {
            return Ok(folder.clone());
        }
        *cached = None;
        let (perms, mode) = match self.mount.access {
            MountAccess::Read => (FsPerms::ReadOnly, OpenMode::READ),
            MountAccess::ReadWrite => (FsPerms::ReadWrite, OpenMode::READ | OpenMode::WRITE),
        };
        let folder = Dir::new(
            File::from(open(&self.mount.base, &self.mount.host)?),
            perms,
            mode,
            false,
        );
        Ok(cached.insert(folder).clone())
    }

    /// Returns the device and inode of the open directory.
    fn identity(&self) -> Option<(u64, u64)> {
        let cached = self.open_directory.lock();
        let stat = fstat(&*cached.as_ref()?.dir).ok()?;
        Some((stat.st_dev, stat.st_ino))
    }

    fn unusable_message(&self, why: &str) -> String {
        let MountPermission {
            host_as_written: host_path,
            guest,
            source_location: location,
            ..
        } = &*self.mount;
        format!(
            "cannot mount the folder {} at {guest}: it {why} ({location})",
            host_path.display()
        )
    }
}

impl fmt::Debug for MountRoot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MountRoot")
            .field("mount", &self.mount)
            .field("identity", &self.identity())
            .finish_non_exhaustive()
    }
}

/// Opens the directory of `caller` in `folder`, and creates it if it does not exist. Follows no
/// links.
fn open_caller_directory(
    folder: &File,
    caller: Option<&CallerIdentity>,
) -> Result<OwnedFd, String> {
    let Some(caller) = caller else {
        return Err(
            "has a folder for each caller, and this caller is not authenticated (see http.tokens)"
                .to_owned(),
        );
    };
    let Some(path) = caller.path() else {
        return Err(
            "cannot have a folder for this caller, whose name is too long for a path".to_owned(),
        );
    };
    let mut current = openat(folder, ".", STEP_FLAGS, Mode::empty()).map_err(describe_error)?;
    for component in path.components() {
        // The path of an identity has only normal components.
        let Component::Normal(name) = component else {
            continue;
        };
        let next = match open_component(&current, name) {
            Err(Errno::NOENT) => match mkdirat(&current, name, Mode::RWXU) {
                // Another call of this caller may have created it concurrently.
                Ok(()) | Err(Errno::EXIST) => open_component(&current, name),
                Err(error) => {
                    return Err(format!(
                        "cannot have a folder for {caller}: {}",
                        io::Error::from(error)
                    ));
                }
            },
            result => result,
        };
        current = next.map_err(|error| match error {
            Errno::NOTDIR | Errno::LOOP => {
                format!(
                    "has something other than a folder in the place of {}, the folder of {caller}",
                    path.display()
                )
            }
            error => describe_error(error),
        })?;
    }
    Ok(current)
}

/// Opens a subdirectory, if it is not a link.
fn open_component(folder: &OwnedFd, name: &OsStr) -> Result<OwnedFd, Errno> {
    openat(folder, name, STEP_FLAGS | OFlags::NOFOLLOW, Mode::empty())
}

/// Opens the directory `path` without following links, except within the prefix `base`.
fn open(base: &Path, path: &Path) -> Result<OwnedFd, String> {
    let (start, rest) = match path.strip_prefix(base) {
        Ok(rest) if base.as_os_str().is_empty() && path.is_relative() => (Path::new("."), rest),
        Ok(rest) if !base.as_os_str().is_empty() => (base, rest),
        _ => (Path::new("/"), path),
    };
    let mut folder = openat(CWD, start, STEP_FLAGS, Mode::empty()).map_err(describe_error)?;
    for component in rest.components() {
        let name = match component {
            Component::RootDir | Component::CurDir | Component::Prefix(_) => continue,
            Component::ParentDir => "..".as_ref(),
            Component::Normal(name) => name,
        };
        folder = match open_component(&folder, name) {
            Ok(next) => next,
            Err(Errno::NOTDIR | Errno::LOOP) if is_link(&folder, name) => {
                return Err(
                    "is reached through a symbolic link; write the path that the link leads to"
                        .to_owned(),
                );
            }
            Err(error) => return Err(describe_error(error)),
        };
    }
    Ok(folder)
}

fn is_link(folder: &OwnedFd, name: &OsStr) -> bool {
    let stat = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW);
    stat.is_ok_and(|found| FileType::from_raw_mode(found.st_mode).is_symlink())
}

/// Describes why a directory cannot be used, as the end of a sentence about it.
fn describe_error(error: Errno) -> String {
    match error {
        Errno::NOENT => "does not exist".to_owned(),
        Errno::NOTDIR => "is not a folder".to_owned(),
        Errno::ACCESS => "cannot be opened by the server: permission denied".to_owned(),
        error => format!("cannot be opened: {}", io::Error::from(error)),
    }
}

#[cfg(test)]
mod tests;
