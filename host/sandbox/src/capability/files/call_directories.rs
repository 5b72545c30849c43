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
    pub(crate) exceeded_quota: Arc<OnceLock<Limit>>,
    /// The temporary directory, which is removed when the call ends.
    pub(crate) scratch: Option<ScratchDirectory>,
    /// The reserved file descriptors of the directories that are opened for the call.
    pub(crate) descriptors: Vec<OpenDescriptor>,
}

impl CallDirectories {
    /// Opens the directories of a call and creates the temporary one.
    ///
    /// # Errors
    ///
    /// Returns a message for the operator if a directory cannot be used.
    pub(crate) async fn open(
        call_context: &CallContext<'_>,
        call_descriptors: &CallDescriptors,
        ledgers: &Arc<LedgerRegistry>,
        temporary_folders: &Arc<TemporaryFolders>,
    ) -> Result<Self, String> {
        let permissions = &call_context.environment.permissions;
        let scoped_mounts = permissions
            .mounts
            .iter()
            .filter(|mount| mount.scope.is_some())
            .count();
        let acquired: Option<Vec<OpenDescriptor>> = (0..scoped_mounts
            + usize::from(permissions.scratch.is_some()))
            .map(|_| call_descriptors.acquire())
            .collect();
        let descriptors = acquired.ok_or(
            "the server has no descriptor left for the folders of this call (raise `ulimit -n`)",
        )?;
        let exceeded_quota = Arc::default();
        let mut mounted = call_context
            .environment
            .roots
            .open_for_call(call_context.caller, ledgers, &exceeded_quota)
            .await?;
        let Some(grant) = &permissions.scratch else {
            return Ok(Self {
                mounted,
                exceeded_quota,
                scratch: None,
                descriptors,
            });
        };
        let scratch = temporary_folders.create().await?;
        let ledger = Arc::clone(&scratch.ledger);
        let bounds = ScratchDirectory::bounds(grant);
        let quota = Some(CallQuota {
            ledger,
            bounds,
            reached_limit: Arc::clone(&exceeded_quota),
        });
        mounted.push(MountedDirectory {
            dir: scratch.dir.clone(),
            guest: grant.guest.clone(),
            quota,
            mount: None,
        });
        Ok(Self {
            mounted,
            exceeded_quota,
            scratch: Some(scratch),
            descriptors,
        })
    }
}
