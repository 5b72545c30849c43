//! Checks and opens the folders that plugins mount.

use std::path::Path;

use toolbay_sandbox::{MountRoots, PluginContext};
use toolbay_secrets::SecretSpec;

use crate::component::blocking_work::run_blocking;
use crate::component::load_environment::LoadEnvironment;
use crate::folder::load_error::LoadError;
use crate::rules::grant::Grant;
use crate::rules::mount_policy::{GuardedPath, MountPlan};

/// Folders that a plugin mounts.
pub(crate) struct OpenedMounts {
    pub(crate) plan: MountPlan,
    /// Warnings for the operator.
    pub(crate) remarks: Vec<String>,
}

/// Checks the folders that the grant of the plugin `id` in `folder` mounts, as a server whose
/// configuration guards these paths would. Returns warnings for the operator. Blocks.
///
/// # Errors
///
/// A server would refuse the plugin.
pub fn check_grant_mounts(
    folder: &Path,
    id: &str,
    grant: &Grant,
    guarded: &[GuardedPath],
) -> Result<Vec<String>, String> {
    let secrets = grant.secret_specs()?;
    let plan = MountPlan::resolve(id, folder, &grant.permissions, &secrets);
    let mut all = vec![GuardedPath::plugin_folder(folder)];
    all.extend_from_slice(guarded);
    let mut remarks = plan.check(&all)?;
    remarks.extend(MountRoots::new(&grant.permissions.mounts).open());
    Ok(remarks)
}

/// Checks the folders that a plugin mounts, on a blocking thread.
pub(crate) async fn check_mounts(
    environment: &LoadEnvironment,
    id: &str,
    grant: &Grant,
    secrets: &[SecretSpec],
) -> Result<(), LoadError> {
    let environment = environment.clone();
    let id = id.to_owned();
    let permissions = grant.permissions.clone();
    let secrets = secrets.to_owned();
    run_blocking("checking its mounts", move || {
        MountPlan::resolve(&id, &environment.folder, &permissions, &secrets)
            .check(&environment.rules.current().guarded_paths)
            .map(drop)
            .map_err(LoadError::Refused)
    })
    .await
}

/// Checks and opens the folders that a plugin mounts. Blocks.
pub(crate) fn open_mounts(
    environment: &LoadEnvironment,
    id: &str,
    context: &PluginContext,
) -> Result<OpenedMounts, LoadError> {
    let secrets = context.secrets.secrets();
    let plan = MountPlan::resolve(id, &environment.folder, &context.permissions, secrets);
    let rules = environment.rules.current();
    let mut remarks = plan
        .check(&rules.guarded_paths)
        .map_err(LoadError::Refused)?;
    if let Some(reach) = &rules.reachable_files {
        remarks.extend(plan.check_reach(reach).map_err(LoadError::Refused)?);
    }
    if let Some(writable) = &rules.writable_paths {
        remarks.extend(plan.check_writable(writable).map_err(LoadError::Refused)?);
    }
    remarks.extend(context.roots.open());
    Ok(OpenedMounts { plan, remarks })
}
