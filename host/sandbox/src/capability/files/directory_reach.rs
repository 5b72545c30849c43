//! The mount behind a directory handle, as far as denial messages need it.

use std::sync::Arc;

use toolbay_policy::{MountAccess, MountPermission};

use crate::context::mount_roots::MountedDirectory;

/// The mount behind a directory handle.
#[derive(Clone, Debug)]
pub(crate) enum DirectoryReach {
    /// No mount: the handle is the root of a guest that has no directory there.
    NoMount,
    /// A mounted directory, or a subdirectory of one.
    Mounted {
        /// The path of the mounted directory in the guest.
        guest: Arc<str>,
        /// The mount, if it is read-only.
        mount: Option<Arc<MountPermission>>,
        /// True if the handle is the mounted directory itself.
        is_mount_root: bool,
    },
}

impl DirectoryReach {
    pub(crate) fn from_mounted(mounted: &MountedDirectory) -> Self {
        let mount = mounted
            .mount
            .clone()
            .filter(|mount| mount.access == MountAccess::Read);
        Self::Mounted {
            guest: mounted.guest.as_str().into(),
            mount,
            is_mount_root: true,
        }
    }

    /// Returns the reach of a subdirectory.
    pub(crate) fn subdirectory(&self) -> Self {
        match self {
            Self::NoMount => Self::NoMount,
            Self::Mounted { guest, mount, .. } => Self::Mounted {
                guest: Arc::clone(guest),
                mount: mount.clone(),
                is_mount_root: false,
            },
        }
    }
}
