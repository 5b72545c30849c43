//! Denials of paths in the guest's directories. The guest gets the WASI error, and the operator
//! gets a report with the reason.

use toolbay_policy::{FileDenial, absolute_path};
use wasmtime::component::Resource;
use wasmtime_wasi::filesystem::WasiFilesystemView as _;
use wasmtime_wasi::p2::bindings::filesystem::types::{ErrorCode, HostDescriptor as _, PathFlags};
use wasmtime_wasi::p2::{FsError, FsResult};

use super::open_at::{OpenRequest, OpenedFile};
use crate::capability::files::directory_reach::DirectoryReach;
use crate::store::state::StoreState;

/// Path of the root directory.
pub(super) const ROOT_PATH: &str = "/";

/// A path in a directory, and how the guest accesses it.
pub(super) struct PathAccess {
    folder: u32,
    flags: PathFlags,
    path: String,
    changes: bool,
}

impl PathAccess {
    /// Describes a path that is about to be opened.
    pub(super) fn for_open(folder: &OpenedFile, request: &OpenRequest) -> Self {
        Self {
            folder: folder.rep(),
            flags: request.path_flags,
            path: request.path.clone(),
            changes: request.creates_or_truncates() || request.opens_for_writing(),
        }
    }

    /// Describes a directory that is about to be listed.
    pub(super) fn for_listing(folder: &OpenedFile) -> Self {
        Self {
            folder: folder.rep(),
            flags: PathFlags::empty(),
            path: ".".to_owned(),
            changes: false,
        }
    }

    /// Describes a path that is about to be created, changed or removed.
    pub(super) fn for_change(folder: &OpenedFile, path: &str) -> Self {
        Self {
            folder: folder.rep(),
            flags: PathFlags::empty(),
            path: path.to_owned(),
            changes: true,
        }
    }

    /// Checks that a directory of the guest contains the path.
    ///
    /// # Errors
    ///
    /// Returns [`ErrorCode::NoEntry`] if none does, because the path does not exist for the guest,
    /// and reports the denial.
    pub(super) fn check_mounted(&self, state: &StoreState) -> FsResult<()> {
        if !matches!(
            state.directory_reach.get(&self.folder),
            Some(DirectoryReach::NoMount)
        ) {
            return Ok(());
        }
        let path = absolute_path(ROOT_PATH, &self.path);
        deny(
            state,
            &FileDenial::Unmounted {
                path,
                is_write: self.changes,
            },
        );
        Err(ErrorCode::NoEntry.into())
    }

    /// Returns `result`. If the operation was not permitted because of the grant, reports the
    /// denial.
    pub(super) async fn report_if_prohibited<T>(
        self,
        state: &mut StoreState,
        result: FsResult<T>,
    ) -> FsResult<T> {
        if matches!(&result, Err(error) if is_prohibited(error)) {
            self.report_denial(state).await;
        }
        result
    }

    async fn report_denial(self, state: &mut StoreState) {
        let Some(DirectoryReach::Mounted {
            guest,
            mount,
            is_mount_root,
        }) = state.directory_reach.get(&self.folder).cloned()
        else {
            return;
        };
        if let Some(mount) = mount.filter(|_| self.changes) {
            return deny(
                state,
                &FileDenial::ReadOnly {
                    mount,
                    path: self.path,
                },
            );
        }
        // Report only if the path itself is prohibited. Other reasons, such as a device at the
        // path, do not depend on how it is reached.
        let folder = Resource::new_borrow(self.folder);
        let lookup = state
            .filesystem()
            .stat_at(folder, self.flags, self.path.clone())
            .await;
        if !matches!(&lookup, Err(error) if is_prohibited(error)) {
            return;
        }
        let target = is_mount_root
            .then(|| absolute_path(&guest, &self.path))
            .filter(|target| !is_within(&guest, target));
        deny(
            state,
            &FileDenial::Outside {
                guest: (*guest).to_owned(),
                path: self.path,
                target,
                is_write: self.changes,
            },
        );
    }
}

fn is_within(folder: &str, path: &str) -> bool {
    std::path::Path::new(path).starts_with(folder)
}

fn is_prohibited(error: &FsError) -> bool {
    matches!(error.downcast_ref(), Some(ErrorCode::NotPermitted))
}

fn deny(state: &StoreState, denied: &FileDenial) {
    state.outgoing_http.report_file_denial(denied);
}
