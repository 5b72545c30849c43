//! Checks and opens the folders that plugins mount.

use toolbay_sandbox::PluginContext;
use toolbay_secrets::SecretSpec;

use crate::component::blocking_work::run_blocking;
use crate::component::load_environment::LoadEnvironment;
use crate::folder::load_error::LoadError;
use crate::rules::grant::Grant;
use crate::rules::mount_policy::MountPlan;

/// Folders that a plugin mounts.
pub(crate) struct OpenedMounts {
    pub(crate) plan: MountPlan,
    /// Warnings for the operator.
    pub(crate) remarks: Vec<String>,
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
