//! The directories of a call: those of its mounts, and a temporary one.

use std::sync::{Arc, OnceLock};

use toolbay_model::Limit;

use crate::capability::files::descriptors::{CallDescriptors, OpenDescriptor};
use crate::capability::files::scratch_directories::{ScratchDirectory, TemporaryFolders};
use crate::context::call_context::CallContext;
use crate::context::mount_roots::MountedDirectory;
use crate::context::usage_ledger::{CallQuota, LedgerRegistry};

/// The directories of one call.
#[derive(Default)]
pub(crate) struct CallDirectories {
    /// All directories, including the temporary one.
    pub(crate) mounted: Vec<MountedDirectory>,
    /// The first quota that the call exceeded.
    pub(crate) full: Arc<OnceLock<Limit>>,
    /// The temporary directory, which is removed when the call ends.
    pub(crate) scratch: Option<ScratchDirectory>,
    /// The reserved file descriptors of the directories that are opened for the call.
    pub(crate) opened: Vec<OpenDescriptor>,
}

impl CallDirectories {
    /// Opens the directories of a call and creates the temporary one.
    ///
    /// # Errors
    ///
    /// Returns a message for the operator if a directory cannot be used.
    pub(crate) async fn open(
        entry: &CallContext<'_>,
        files: &CallDescriptors,
        ledgers: &Arc<LedgerRegistry>,
        scratches: &Arc<TemporaryFolders>,
    ) -> Result<Self, String> {
        let permissions = &entry.environment.permissions;
        let own = permissions
            .mounts
            .iter()
            .filter(|mount| mount.scope.is_some())
            .count();
        let opened: Option<Vec<OpenDescriptor>> = (0..own
            + usize::from(permissions.scratch.is_some()))
            .map(|_| files.acquire())
            .collect();
        let opened = opened.ok_or(
            "the server has no descriptor left for the folders of this call (raise `ulimit -n`)",
        )?;
        let full = Arc::default();
        let mut mounted = entry
            .environment
            .roots
            .open_for_call(entry.caller, ledgers, &full)
            .await?;
        let Some(grant) = &permissions.scratch else {
            return Ok(Self {
                mounted,
                full,
                scratch: None,
                opened,
            });
        };
        let scratch = scratches.create().await?;
        let ledger = Arc::clone(&scratch.ledger);
        let bounds = ScratchDirectory::bounds(grant);
        let quota = Some(CallQuota {
            ledger,
            bounds,
            reached: Arc::clone(&full),
        });
        mounted.push(MountedDirectory {
            dir: scratch.dir.clone(),
            guest: grant.guest.clone(),
            quota,
            mount: None,
        });
        Ok(Self {
            mounted,
            full,
            scratch: Some(scratch),
            opened,
        })
    }
}
