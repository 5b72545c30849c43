//! What a guest may not reach in the folders that it has: it gets the error that WASI has for it, and the operator sees
//! what it was.

use toolbay_policy::{FileDenied, absolute};
use wasmtime::component::Resource;
use wasmtime_wasi::filesystem::WasiFilesystemView as _;
use wasmtime_wasi::p2::bindings::filesystem::types::{ErrorCode, HostDescriptor as _, PathFlags};
use wasmtime_wasi::p2::{FsError, FsResult};

use super::opening::{OpenRequest, OpenedFile};
use crate::directory_reach::DirectoryReach;
use crate::state::StoreState;

/// Where it is.
pub(super) const ROOT: &str = "/";

/// A path in a folder, and what is done with it.
pub(super) struct UsedPath {
    folder: u32,
    flags: PathFlags,
    path: String,
    changes: bool,
}

impl UsedPath {
    /// What is to be opened.
    pub(super) fn opened(folder: &OpenedFile, opening: &OpenRequest) -> Self {
        Self {
            folder: folder.rep(),
            flags: opening.path_flags,
            path: opening.path.clone(),
            changes: opening.changes() || opening.writes(),
        }
    }

    /// A folder that is to be listed.
    pub(super) fn listed(folder: &OpenedFile) -> Self {
        Self { folder: folder.rep(), flags: PathFlags::empty(), path: ".".to_owned(), changes: false }
    }

    /// What is to be made, changed or removed.
    pub(super) fn changed(folder: &OpenedFile, path: &str) -> Self {
        Self { folder: folder.rep(), flags: PathFlags::empty(), path: path.to_owned(), changes: true }
    }

    /// # Errors
    ///
    /// No folder of the guest contains it: for the guest, it does not exist.
    pub(super) fn exists(&self, state: &StoreState) -> FsResult<()> {
        if !matches!(state.reach.get(&self.folder), Some(DirectoryReach::Nothing)) {
            return Ok(());
        }
        let path = absolute(ROOT, &self.path);
        deny(state, &FileDenied::Unmounted { path, changes: self.changes });
        Err(ErrorCode::NoEntry.into())
    }

    /// The result of what was done. If it was not permitted, that is reported if the grant is why.
    pub(super) async fn explained<T>(self, state: &mut StoreState, result: FsResult<T>) -> FsResult<T> {
        if matches!(&result, Err(error) if is_prohibited(error)) {
            self.report(state).await;
        }
        result
    }

    async fn report(self, state: &mut StoreState) {
        let Some(DirectoryReach::Within { guest, mount, is_top }) = state.reach.get(&self.folder).cloned() else {
            return;
        };
        if let Some(mount) = mount.filter(|_| self.changes) {
            return deny(state, &FileDenied::ReadOnly { mount, path: self.path });
        }
        // Other reasons, such as a device in its place, do not depend on the way to it.
        let folder = Resource::new_borrow(self.folder);
        let looked = state.filesystem().stat_at(folder, self.flags, self.path.clone()).await;
        if !matches!(&looked, Err(error) if is_prohibited(error)) {
            return;
        }
        let target = is_top.then(|| absolute(&guest, &self.path)).filter(|target| !contains(&guest, target));
        deny(
            state,
            &FileDenied::Outside { guest: (*guest).to_owned(), path: self.path, target, changes: self.changes },
        );
    }
}

fn contains(folder: &str, path: &str) -> bool {
    std::path::Path::new(path).starts_with(folder)
}

fn is_prohibited(error: &FsError) -> bool {
    matches!(error.downcast_ref(), Some(ErrorCode::NotPermitted))
}

fn deny(state: &StoreState, denied: &FileDenied) {
    state.requests.deny_file(denied);
}
