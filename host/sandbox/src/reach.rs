//! What a handle of a folder leads to, as far as a denial says it.

use std::sync::Arc;

use toolbay_policy::{Access, Mount};

use crate::roots::Mounted;

/// What a handle of a folder leads to.
#[derive(Clone, Debug)]
pub(crate) enum Reach {
    /// Nothing: it is the root of a guest that has no folder there.
    Nothing,
    /// A mounted folder, or one in it.
    Within {
        /// The path of the mounted folder in the guest.
        guest: Arc<str>,
        /// Its mount, if it is one that can only be read.
        mount: Option<Arc<Mount>>,
        /// Whether it is the mounted folder itself.
        is_top: bool,
    },
}

impl Reach {
    pub(crate) fn of(mounted: &Mounted) -> Self {
        let mount = mounted.mount.clone().filter(|mount| mount.access == Access::Read);
        Self::Within { guest: mounted.guest.as_str().into(), mount, is_top: true }
    }

    /// What a folder that is opened in it leads to.
    pub(crate) fn below(&self) -> Self {
        match self {
            Self::Nothing => Self::Nothing,
            Self::Within { guest, mount, .. } => {
                Self::Within { guest: Arc::clone(guest), mount: mount.clone(), is_top: false }
            }
        }
    }
}
